//! What of the page is markup, in a type of its own: no text becomes a part of the page unless it is escaped.

use std::ops::{AddAssign, Deref};

use crate::report::text::shortened;

/// Most characters of a text from the model that a page shows in one place.
const LONGEST: usize = 200;

/// Markup. It is made of literals in the code, by [`html!`], and of texts that are escaped; the compiler refuses any
/// other text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

/// What [`html!`] puts into the gaps of its literal. Texts are no parts: they become one by [`Html::text`].
pub(crate) trait Part {
    fn add_to(&self, out: &mut String);
}

impl Part for Html {
    fn add_to(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl Part for f64 {
    fn add_to(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }
}

/// Markup from a literal, in which each `{}` takes one of the parts. Their numbers are compared when this is compiled.
macro_rules! html {
    ($template:literal $(, $part:expr)* $(,)?) => {{
        const { assert!($crate::report::html::gaps($template) == <[&str]>::len(&[$(stringify!($part)),*])) };
        $crate::report::html::Html::filled($template, &[$(&$part as &dyn $crate::report::html::Part),*])
    }};
}

pub(crate) use html;

/// The number of `{}`. No other brace may stand in a template.
pub(crate) const fn gaps(template: &str) -> usize {
    let (bytes, mut at, mut count) = (template.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            assert!(at + 1 < bytes.len() && bytes[at + 1] == b'}', "a template names no variables: give them as parts");
            count += 1;
            at += 1;
        } else {
            assert!(bytes[at] != b'}', "a lone brace in a template");
        }
        at += 1;
    }
    count
}

impl Html {
    /// A text, which shows as it is, whatever it says.
    pub fn text(text: &str) -> Self {
        Self(escaped(text))
    }

    /// A text from elsewhere, cut to a length that fits a page, and kept from turning the direction of the text around it.
    pub fn isolated(text: &str) -> Self {
        html!("<bdi>{}</bdi>", Self::text(&shortened(text, LONGEST)))
    }

    /// A part of this library, such as its style sheet.
    pub fn own(text: &'static str) -> Self {
        Self(text.into())
    }

    /// What [`html!`] makes.
    pub fn filled(template: &'static str, parts: &[&dyn Part]) -> Self {
        let mut out = String::with_capacity(2 * template.len());
        let mut parts = parts.iter();
        for (k, piece) in template.split("{}").enumerate() {
            if let Some(part) = (k > 0).then(|| parts.next()).flatten() {
                part.add_to(&mut out);
            }
            out.push_str(piece);
        }
        Self(out)
    }

    /// The bytes of a file.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Html {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AddAssign for Html {
    fn add_assign(&mut self, other: Self) {
        self.0.push_str(&other.0);
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

/// Safe inside an element and inside a quoted attribute, whatever it says. Characters that no page may hold, and those
/// that turn the direction of what follows, are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_noncharacter(c) || turns(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn is_noncharacter(c: char) -> bool {
    let code = c as u32;
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// Embeddings, overrides and isolates.
fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let text = "<script>alert('x')</script>&\"\u{0}\u{ffff}\u{85}\u{202e}";
        let expected = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(&*Html::text(text), expected);
        assert_eq!(&*Html::isolated("a<b"), "<bdi>a&lt;b</bdi>");
        assert_eq!(&*html!("<b>{}</b>{}", Html::text("<"), 1.5), "<b>&lt;</b>1.5");
    }

    #[test]
    fn templates_count_their_gaps() {
        assert_eq!((gaps(""), gaps("a{}b{}"), gaps("{}")), (0, 2, 1));
    }

    /// If a text were a part, `marked` would have two meanings for it, and this would not compile.
    #[test]
    fn a_text_is_no_part() {
        trait Marked<A> {
            fn marked() {}
        }
        struct IsPart;
        impl<T: ?Sized> Marked<()> for T {}
        impl<T: ?Sized + Part> Marked<IsPart> for T {}
        <str as Marked<_>>::marked();
        <String as Marked<_>>::marked();
        <&str as Marked<_>>::marked();
        <&String as Marked<_>>::marked();
        <std::borrow::Cow<'_, str> as Marked<_>>::marked();
        <char as Marked<_>>::marked();
        <std::fmt::Arguments<'_> as Marked<_>>::marked();
    }
}
