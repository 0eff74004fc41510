//! What connections order of streams, at this worker and at others.

use proto::{Now, Token};

use crate::workers::asker::Asker;
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
        self.with_asker(asker, |connection| connection.hear(self, asker.slot, news));
    }
}
