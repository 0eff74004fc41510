//! Pages of keys.

use types::{MAX_PAGE_KEYS, NamespaceId, Scan, ScanBound, ScanPage, Slot};

use super::*;

fn scan(from: ScanBound, keys: u16) -> Scan {
    let (namespace, slot, prefix) = (NamespaceId::DEFAULT, Slot(0), Bytes::new());
    Scan { namespace, slot, from, prefix, keys, bytes: u32::MAX }
}

impl Stage {
    fn ask(&mut self, token: u64, request: Request) -> Option<Outcome> {
        let hash = KeyHash::of(ClusterId(1), request.key_bytes());
        let deadline = Time(self.now + self.timing.request_deadline_us);
        let reply = ReplyTo::Local(Token([token, 0]));
        let pending = Pending { reply, hash, request: request.into(), deadline };
        self.act(|primary, context| primary.submit(context, &pending)).0
    }

    /// Writes keys of `namespace`, and commits them.
    fn write(&mut self, namespace: NamespaceId, keys: std::ops::Range<u32>, expiry: Expiry) {
        for number in keys {
            let key = Key::of(namespace, Bytes::from(format!("key-{number}"))).unwrap();
            let store = Store {
                mode: StoreMode::Set,
                value: Bytes::from_static(b"v"),
                flags: 0,
                expiry,
                compare: None,
                version: None,
                invalidate: false,
                vivify: None,
            };
            assert_eq!(self.ask(1000, Request::on(key, Op::Store(store))), None);
            self.flush();
            let last = self.primary().stream.last().0;
            PARITIES.iter().for_each(|role| drop(self.ack(*role, last)));
        }
    }

    fn page(&mut self, scan: Scan) -> ScanPage {
        match self.ask(2000, Request::scan(scan)) {
            Some(Outcome::Keys(page)) => *page,
            other => panic!("no page but {other:?}"),
        }
    }
}

#[test]
fn a_page_ends_where_it_is_full_and_the_next_one_goes_on() {
    let mut stage = Stage::with_item();
    stage.write(NamespaceId::DEFAULT, 0..60, Expiry::Never);
    let (mut all, mut next, mut pages) = (Vec::new(), Some(ScanBound::BEGIN), 0);
    while let Some(from) = next {
        let page = stage.page(scan(from, 7));
        assert!(page.keys.len() == 7 || page.next.is_none());
        assert!(page.next.is_none_or(|next| next > from));
        all.extend(page.keys);
        (next, pages) = (page.next, pages + 1);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    // The stage has one of its own.
    assert_eq!((count, all.len(), pages), (61, 61, 9));
    let short = stage.page(Scan { bytes: 1, ..scan(ScanBound::BEGIN, 256) });
    assert_eq!(short.keys.len(), 1, "one key has as many bytes as were asked for");
    let some = stage.page(Scan { prefix: Bytes::from_static(b"key-1"), ..scan(ScanBound::BEGIN, 256) });
    assert_eq!((some.keys.len(), some.next), (11, None));
}

#[test]
fn a_page_looks_at_so_many_items_and_no_more_whosever_they_are() {
    let mut stage = Stage::with_item();
    stage.write(NamespaceId(5), 0..300, Expiry::Never);
    stage.write(NamespaceId::DEFAULT, 0..3, Expiry::At(UnixSeconds(1001)));
    let first = stage.page(scan(ScanBound::BEGIN, 256));
    let next = first.next.expect("there are more than it looks at");
    let last = stage.page(scan(next, 256));
    assert_eq!((first.keys.len() + last.keys.len(), last.next), (4, None));
    let theirs = stage.page(Scan { namespace: NamespaceId(5), ..scan(ScanBound::BEGIN, 256) });
    assert!(theirs.keys.len() > 200 && theirs.keys.len() <= MAX_PAGE_KEYS);
    assert!(theirs.keys.iter().all(|key| key.starts_with(b"key-")), "as their clients call them");
}

#[test]
fn a_page_waits_for_the_lease() {
    let mut stage = Stage::with_item();
    stage.now += stage.timing.read_lease_us;
    assert!(!stage.may_serve());
    assert_eq!(stage.ask(7, Request::scan(scan(ScanBound::BEGIN, 256))), None);
    let last = stage.primary().stream.last().0;
    stage.tick();
    stage.flush();
    let done: Vec<Done> = PARITIES.map(|role| stage.ack(role, last)).into_iter().flatten().collect();
    let comes = |done: &Done| matches!(done, Done::Replies(7, Outcome::Keys(page)) if page.keys.len() == 1);
    assert!(done.iter().any(comes), "{done:?}");
}

#[test]
fn what_is_damaged_is_counted_and_the_other_keys_come() {
    let mut stage = Stage::with_item();
    stage.write(NamespaceId::DEFAULT, 0..5, Expiry::Never);
    let (addr, _) = stage.primary().store().unwrap().iter_items().next().unwrap();
    let key = addr.byte() + store::ITEM_HEADER_BYTES;
    stage.primary.as_mut().unwrap().phase.serving_mut().damage(key, 1);
    let page = stage.page(scan(ScanBound::BEGIN, 256));
    assert_eq!((page.keys.len(), page.damaged, page.next), (5, 1, None));
}
