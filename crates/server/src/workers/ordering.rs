//! What connections, and the host itself, order of streams, at this worker and at others.

use proto::{Host, Now, Token, WriteNews, WriteStep};

use crate::workers::asker::{Asker, Awaits};
use crate::workers::streams::{News, Order};
use crate::workers::worker::Worker;

impl Worker {
    /// Does something for a stream whose group worker `shard` has; what came of it at once.
    pub(crate) fn order(&self, now: Now, shard: u16, asker: Asker, order: Order) -> Option<News> {
        if shard == self.shard {
            return self.order_here(now, asker, order);
        }
        self.crossings.order(shard, asker, order);
        self.pump.request();
        None
    }

    /// The same at this worker.
    pub(crate) fn order_here(&self, now: Now, asker: Asker, order: Order) -> Option<News> {
        let (token, is_last) = (asker.into(), matches!(order, Order::Abandon));
        let news = self.streams.carry_out(&mut self.host.borrow_mut(), now, token, order);
        if is_last {
            self.streams.end(token);
        }
        self.pump.request();
        news
    }

    /// The last news of a stream.
    pub(crate) fn end_stream(&self, token: Token, news: News) {
        self.streams.end(token);
        self.tell(token.into(), news);
    }

    /// There is news of a stream, for a connection of this worker or for another worker.
    pub(crate) fn tell(&self, asker: Asker, news: News) {
        if asker.shard != self.shard {
            return self.crossings.tell(asker, news);
        }
        if asker.awaits == Awaits::HostNews {
            self.pump.request();
            return hear_written(&mut self.host.borrow_mut(), self.clock.now(), asker, news);
        }
        self.with_asker(asker, |connection| connection.hear(self, asker.slot, news));
    }

    /// The same of a stream of `host`, which is at work.
    pub(super) fn tell_from(&self, host: &mut Host, now: Now, asker: Asker, news: News) {
        if asker.awaits == Awaits::HostNews && asker.shard == self.shard {
            self.pump.request();
            hear_written(host, now, asker, news);
        } else {
            self.tell(asker, news);
        }
    }

    /// The host has a value written, here or by another worker.
    pub(super) fn write(&self, now: Now, number: u64, shard: u16, step: WriteStep) {
        let asker = Asker { shard: self.shard, connection: 0, slot: number, awaits: Awaits::HostNews };
        let order = match step {
            WriteStep::Begin(place, new) => Order::Upload(place, new),
            WriteStep::Feed(bytes) => Order::Feed(bytes),
            WriteStep::Abandon => Order::Abandon,
        };
        if let Some(news) = self.order(now, shard, asker, order) {
            self.tell(asker, news);
        }
    }
}

fn hear_written(host: &mut Host, now: Now, asker: Asker, news: News) {
    let news = match news {
        News::Room(bytes) => WriteNews::Room(bytes),
        News::Ended(outcome) => WriteNews::Ended(outcome),
        News::Part(_) | News::Cells(_) | News::Whole => return,
    };
    host.streams(now).hear_written(asker.slot, news);
}
