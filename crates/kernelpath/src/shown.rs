//! Texts from elsewhere, such as labels and the names of files and columns, as a terminal may show them.

use std::borrow::Cow;

/// The text on one line, with all that a terminal would not show as a character written out: control characters, which
/// can move the cursor and rewrite what is on the screen, ends of lines, characters that turn the direction of what
/// follows, and characters that no one sees. Everything that is printed goes through this.
///
/// ```
/// assert_eq!(kernelpath::shown("größer"), "größer");
/// assert_eq!(kernelpath::shown("ham\n\u{1b}[32mproved"), "ham\\n\\u{1b}[32mproved");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a terminal does something else with the character than show it.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' // marks of direction, empty spaces
            | '\u{2028}'..='\u{202e}' // ends of lines and paragraphs, embeddings and overrides
            | '\u{2060}'..='\u{206f}' // isolates, and what joins without a trace
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_or_hides_is_left() {
        let all = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect::<String>();
        assert!(all.contains('\u{9b}') && all.contains('\u{7f}') && all.contains('\u{202e}') && all.len() > 200);
        let text = shown(&all);
        assert!(text.chars().all(|c| c.is_ascii_graphic()), "{text}");
        assert_eq!(shown("a\tb\r\u{9b}1m"), "a\\tb\\r\\u{9b}1m");
        // What is shown once is not changed again.
        assert_eq!(shown(&text), text);
    }

    #[test]
    fn letters_of_all_languages_stay() {
        for text in ["größer", "日本語", "العربية", "👩\u{200d}👩", "a b", "C:\\data", "−1 ± 0.5"] {
            assert!(matches!(shown(text), Cow::Borrowed(same) if same == text));
        }
    }
}
