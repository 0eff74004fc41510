//! Who computes the codes of values in chunks: an accelerator where it can, else the processor, with the same bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use codec::{Accelerator, Code, Coder, Plan as CodePlan, Work};

use crate::harness::{Plan, eventually, http_get};
use crate::objects::{MIB, expect_get, noise, put, striped_as};

/// Takes every second operation. Those that it leaves it spoils.
#[derive(Debug, Default)]
struct EverySecond {
    asked: AtomicU64,
    bytes: AtomicU64,
    decoded: AtomicU64,
}

impl EverySecond {
    fn may(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]], does: impl FnOnce(&mut [&mut [u8]])) -> bool {
        let is_done = self.asked.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        outputs.iter_mut().for_each(|output| output.fill(0xa5));
        if is_done {
            let bytes = sources.iter().map(|source| source.len() as u64).sum();
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            does(outputs);
        }
        is_done
    }
}

impl Accelerator for EverySecond {
    fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> bool {
        self.may(data, parity, |parity| code.encode(data, parity).expect("a row"))
    }

    fn reconstruct(&self, plan: &CodePlan, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
        self.decoded.fetch_add(1, Ordering::Relaxed);
        self.may(sources, outputs, |outputs| plan.run(sources, outputs).expect("cells of a row"))
    }

    fn combine(&self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
        let kernel = codec::kernel();
        self.may(sources, outputs, |outputs| {
            kernel.combine(coefficients, sources, outputs).expect("pieces of one length");
        })
    }

    fn work(&self) -> Work {
        let asked = self.asked.load(Ordering::Relaxed);
        Work {
            done: asked / 2,
            bytes: self.bytes.load(Ordering::Relaxed),
            left: asked.div_ceil(2),
            faults: 0,
        }
    }

    fn name(&self) -> String {
        "every second".to_owned()
    }
}

#[test]
fn an_accelerator_codes_and_decodes_and_what_it_leaves_the_processor_does() {
    let accelerator = Arc::new(EverySecond::default());
    let mut cluster = striped_as(&Plan::default(), |config| config.coder = Coder::with(accelerator.clone()));
    let values: Vec<Vec<u8>> = (0..4).map(|seed| noise(seed, 2 * MIB + 777)).collect();
    for (at, value) in values.iter().enumerate() {
        let client = &mut cluster.client(at);
        put(client, &format!("k{at}"), value);
        client.expect("STORED\r\n");
        expect_get(&mut cluster.client(at + 1), &format!("k{at}"), value);
    }
    let coded = accelerator.work();
    assert!(coded.done > 40 && coded.bytes > 4 * MIB as u64, "{coded:?}");
    // Some of these may have been hedged, and so decoded.
    let hedged = accelerator.decoded.load(Ordering::Relaxed);
    cluster.nodes.pop().expect("five nodes").stop();
    for (at, value) in values.iter().enumerate() {
        let key = format!("k{at}");
        eventually("read without a node", || {
            let client = &mut cluster.client(at % 4);
            client.send(format!("mg {key} s\r\n"));
            let line = client.line();
            if !line.starts_with("HD ") {
                return Err(line);
            }
            expect_get(client, &key, value);
            Ok(())
        });
    }
    assert!(accelerator.decoded.load(Ordering::Relaxed) > hedged, "{:?}", accelerator.work());
    eventually("told", || {
        let done = accelerator.work().done;
        let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
        let is_there = page.contains(&format!("gestalt_coding_total{{place=\"accelerator\"}} {done}\n"));
        let status = cluster.status(0).coding.expect("an accelerator");
        let is_so = (status.place.as_str(), status.done, status.faults) == ("every second", done, 0);
        if is_there && is_so { Ok(()) } else { Err(format!("{done} {page}")) }
    });
}

#[test]
fn without_an_accelerator_nothing_is_said_of_one() {
    let cluster = crate::harness::Cluster::start();
    let (_, page) = http_get(cluster.nodes[0].addresses().http, "/metrics");
    assert!(!page.contains("\ngestalt_coding_"), "{page}");
    assert_eq!(cluster.status(0).coding, None);
}
