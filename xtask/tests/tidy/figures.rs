//! Figures that documents show are kept as JSON, for whoever takes some of them anew. Merged by hand, a field may come twice.

use std::collections::BTreeSet;
use std::fmt::{Formatter, Result as Written};
use std::fs;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::sources::{files_under, relative, root};

/// A document no field of which comes twice.
struct Document;

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = Self;

    fn expecting(&self, to: &mut Formatter<'_>) -> Written {
        to.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some((field, IgnoredAny)) = fields.next_entry::<String, _>()? {
            if let Some(twice) = seen.replace(field) {
                return Err(A::Error::custom(format!("{twice} comes twice")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Self, A::Error> {
        while rows.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

/// What is wrong with documents of figures.
pub fn bad() -> Vec<String> {
    let files = files_under(&root().join("docs")).into_iter();
    let documents = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let wrong = |file: std::path::PathBuf| {
        let text = fs::read_to_string(&file).expect("a document can be read");
        let read: Result<Document, _> = serde_json::from_str(&text);
        read.err().map(|error| format!("{}: {error}", relative(&file)))
    };
    documents.filter_map(wrong).collect()
}

#[test]
fn a_field_that_comes_twice_is_seen() {
    let read = |text: &str| serde_json::from_str::<Document>(text).is_ok();
    assert!(read(r#"{"a": [1], "b": {"a": 2}}"#) && !read(r#"{"a": 1, "b": 2, "a": 1}"#));
}
