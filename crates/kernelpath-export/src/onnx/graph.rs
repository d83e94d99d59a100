//! A graph that grows operator by operator.

use crate::error::{Error, Result};
use crate::onnx::proto::{AttributeProto, Element, GraphProto, NodeProto, TensorProto, ValueInfoProto};

/// Bytes of all constants together: a protobuf message has at most 2 GiB, and the rest of it takes some.
const MOST_BYTES: u64 = (1 << 31) - (1 << 24);

pub(crate) fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Refused { format: "ONNX", reason: reason.into() })
}

/// What an operator computes, or a constant, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value(pub String);

/// A graph that grows operator by operator. All floats in it have one precision.
pub(crate) struct Graph {
    /// Before the names of what is in this graph: names within a graph must differ from those around it.
    prefix: &'static str,
    is_single: bool,
    bytes: u64,
    proto: GraphProto,
}

impl Graph {
    pub fn new(name: &str, prefix: &'static str, is_single: bool) -> Self {
        let proto = GraphProto { name: Some(name.into()), ..GraphProto::default() };
        Self { prefix, is_single, bytes: 0, proto }
    }

    /// The type of floats.
    pub fn float(&self) -> Element {
        if self.is_single { Element::Float } else { Element::Double }
    }

    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// An input. An axis is `None` where it has the rows of the input.
    pub fn input(&mut self, name: &str, axes: &[Option<usize>], about: &str) -> Value {
        self.proto.input.push(ValueInfoProto::new(name, self.float(), axes, about));
        Value(name.into())
    }

    /// Makes a value an output of that name.
    pub fn output(&mut self, value: &Value, name: &str, element: Element, axes: &[Option<usize>], about: &str) {
        self.push("Identity", &[value], Vec::new(), name.into());
        self.proto.output.push(ValueInfoProto::new(name, element, axes, about));
    }

    pub fn apply(&mut self, operator: &str, inputs: &[&Value]) -> Value {
        self.apply_with(operator, inputs, Vec::new())
    }

    pub fn apply_with(&mut self, operator: &str, inputs: &[&Value], attributes: Vec<AttributeProto>) -> Value {
        let name = format!("{}{operator}_{}", self.prefix, self.proto.node.len());
        self.push(operator, inputs, attributes, name)
    }

    fn push(&mut self, operator: &str, inputs: &[&Value], attribute: Vec<AttributeProto>, name: String) -> Value {
        self.proto.node.push(NodeProto {
            input: inputs.iter().map(|input| input.0.clone()).collect(),
            output: vec![name.clone()],
            name: Some(format!("{}node_{}", self.prefix, self.proto.node.len())),
            op_type: Some(operator.into()),
            attribute,
        });
        Value(name)
    }

    /// Whether there is room for an array of floats with these axes.
    pub fn check_room(&self, axes: &[usize]) -> Result<u64> {
        let size = if self.is_single { 4 } else { 8 };
        let bytes = axes.iter().fold(size, |product: u64, axis| product.saturating_mul(*axis as u64));
        let total = self.bytes.saturating_add(bytes);
        if total > MOST_BYTES {
            return refused(format!(
                "its arrays take {total} bytes, and a file of ONNX holds 2 GiB; fit with fewer landmarks or columns"
            ));
        }
        Ok(bytes)
    }

    /// An array of floats, last axis fastest.
    pub fn floats(&mut self, name: &str, axes: &[usize], entries: impl Iterator<Item = f64>) -> Result<Value> {
        let bytes = self.check_room(axes)?;
        self.bytes += bytes;
        let mut raw = Vec::with_capacity(bytes as usize);
        for entry in entries {
            if self.is_single {
                let single = entry as f32;
                if !single.is_finite() {
                    return refused(format!("its number {entry} is none in single precision; convert in double"));
                }
                raw.extend(single.to_le_bytes());
            } else {
                raw.extend(entry.to_le_bytes());
            }
        }
        let tensor = TensorProto { raw_data: Some(raw), ..TensorProto::default() };
        Ok(self.constant(name, self.float(), axes, tensor))
    }

    /// A number.
    pub fn number(&mut self, name: &str, value: f64) -> Result<Value> {
        self.floats(name, &[], std::iter::once(value))
    }

    /// A list of integers.
    pub fn integers(&mut self, name: &str, values: &[i64]) -> Value {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = TensorProto { raw_data: Some(raw), ..TensorProto::default() };
        self.constant(name, Element::Int64, &[values.len()], tensor)
    }

    /// Any array.
    pub fn constant(&mut self, name: &str, element: Element, axes: &[usize], tensor: TensorProto) -> Value {
        let name = format!("{}{name}_{}", self.prefix, self.proto.initializer.len());
        self.proto.initializer.push(TensorProto {
            dims: axes.iter().map(|axis| *axis as i64).collect(),
            data_type: Some(element as i32),
            name: Some(name.clone()),
            ..tensor
        });
        Value(name)
    }

    pub fn finish(self) -> GraphProto {
        self.proto
    }
}

/// Operators by what they do.
impl Graph {
    pub fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.apply("Add", &[a, b])
    }

    pub fn sub(&mut self, a: &Value, b: &Value) -> Value {
        self.apply("Sub", &[a, b])
    }

    pub fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.apply("Mul", &[a, b])
    }

    pub fn div(&mut self, a: &Value, b: &Value) -> Value {
        self.apply("Div", &[a, b])
    }

    /// The product of two matrices.
    pub fn times(&mut self, a: &Value, b: &Value) -> Value {
        self.apply("MatMul", &[a, b])
    }

    /// Entries `places` of an axis.
    pub fn take(&mut self, value: &Value, places: &Value, axis: i64) -> Value {
        self.apply_with("Gather", &[value, places], vec![AttributeProto::int("axis", axis)])
    }

    /// Without an axis of length 1.
    pub fn without_axis(&mut self, value: &Value, axis: i64) -> Value {
        let axes = self.integers("axis", &[axis]);
        self.apply("Squeeze", &[value, &axes])
    }

    /// With an axis of length 1.
    pub fn with_axis(&mut self, value: &Value, axis: i64) -> Value {
        let axes = self.integers("axis", &[axis]);
        self.apply("Unsqueeze", &[value, &axes])
    }

    /// The sum over the second axis, which stays with length 1.
    pub fn sum_of_rows(&mut self, value: &Value) -> Value {
        let axes = self.integers("axis", &[1]);
        self.apply_with("ReduceSum", &[value, &axes], vec![AttributeProto::int("keepdims", 1)])
    }

    pub fn cast(&mut self, value: &Value, element: Element) -> Value {
        self.apply_with("Cast", &[value], vec![AttributeProto::int("to", element as i64)])
    }

    /// The `count` smallest entries of each row, rising.
    pub fn rising(&mut self, value: &Value, count: &Value) -> Value {
        let attributes = [("axis", 1), ("largest", 0), ("sorted", 1)];
        let attributes = attributes.map(|(name, value)| AttributeProto::int(name, value)).to_vec();
        let smallest = self.apply_with("TopK", &[value, count], attributes);
        // Its second output is their places.
        if let Some(node) = self.proto.node.last_mut() {
            node.output.push(format!("{}_places", smallest.0));
        }
        smallest
    }

    /// Parts side by side.
    pub fn beside(&mut self, parts: &[Value]) -> Value {
        let parts: Vec<&Value> = parts.iter().collect();
        self.apply_with("Concat", &parts, vec![AttributeProto::int("axis", 1)])
    }
}
