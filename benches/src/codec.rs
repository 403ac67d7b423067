//! How fast is Hessian2, encoding and decoding?

use bytes::{Bytes, BytesMut};
use dubhe_core::serialize::Serialization;
use dubhe_serialize_hessian2::Hessian2;
use serde::{Deserialize, Serialize};

/// An order as a Java service would define it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "dev.dubhe.bench.Order", rename_all = "camelCase")]
pub struct Order {
    id: i64,
    customer: String,
    paid: bool,
    total: f64,
    items: Vec<Item>,
}

/// One line of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "dev.dubhe.bench.Item", rename_all = "camelCase")]
pub struct Item {
    article: String,
    count: i32,
    price: f64,
}

/// An order with `items` lines.
pub fn order(items: usize) -> Order {
    let item = |index: usize| Item {
        article: format!("article number {index}"),
        count: index as i32 % 7,
        price: index as f64 * 1.25,
    };
    Order {
        id: 9_007_199_254_740_993,
        customer: "Ada Lovelace".to_owned(),
        paid: true,
        total: 1_234.56,
        items: (0..items).map(item).collect(),
    }
}

/// One value to be encoded and decoded.
#[derive(Debug)]
pub struct Codec<T> {
    hessian2: Hessian2,
    value: T,
    encoded: Bytes,
    buffer: BytesMut,
}

impl<T: Serialize + for<'de> Deserialize<'de> + PartialEq> Codec<T> {
    /// Checks that the value comes back as it was.
    pub fn new(value: T) -> anyhow::Result<Self> {
        let hessian2 = Hessian2::default();
        let mut buffer = BytesMut::new();
        hessian2.encode(&mut buffer, &mut |writer| writer.write(&value))?;
        let encoded = buffer.split().freeze();
        let mut reader = hessian2.reader(encoded.clone());
        anyhow::ensure!(reader.read_as::<T>()? == value, "the value does not come back as it was");
        Ok(Self { hessian2, value, encoded, buffer })
    }

    /// Size of the encoded value.
    pub fn bytes(&self) -> usize {
        self.encoded.len()
    }

    /// Encodes it once; gives the size.
    pub fn encode(&mut self) -> usize {
        self.buffer.clear();
        let encoded = self.hessian2.encode(&mut self.buffer, &mut |writer| writer.write(&self.value));
        encoded.map_or(0, |()| self.buffer.len())
    }

    /// Decodes it once.
    pub fn decode(&self) -> Option<T> {
        self.hessian2.reader(self.encoded.clone()).read_as::<T>().ok()
    }
}
