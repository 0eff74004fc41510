//! What a host has for its driver: answers and messages one kind after the other, for they are often; all else is seldom.

use types::NodeId;
use types::op::Outcome;
use wire::message::{Answer, PeerMessage};

use super::Host;
use super::driver::{Action, Token};
use crate::objects;
use crate::outbox::ReplyTo;

/// See the module.
pub struct Actions<'a>(&'a mut Host);

impl Host {
    /// What the driver has to do, for who asks often.
    #[inline]
    pub fn actions(&mut self) -> Actions<'_> {
        Actions(self)
    }

    /// The next thing to do. What goes to one node keeps its order, and so does what goes to the coordinator.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions().next()
    }
}

impl Actions<'_> {
    /// The next message to another node, if there is one.
    #[inline]
    pub fn next_message(&mut self) -> Option<(NodeId, PeerMessage)> {
        self.0.around.out().messages.pop_front()
    }

    /// The next answer to a request of this node, if there is one. Those to requests of other nodes are messages from then on.
    #[inline]
    pub fn next_answer(&mut self) -> Option<(Token, Outcome)> {
        while let Some((to, outcome)) = self.0.around.out().replies.pop_front() {
            match to {
                ReplyTo::Local(token) => return Some((token, outcome)),
                _ => self.answer_elsewhere(to, outcome),
            }
        }
        None
    }

    /// Another process of that node has not asked.
    #[inline(never)]
    fn answer_elsewhere(&mut self, to: ReplyTo, outcome: Outcome) {
        if let ReplyTo::Remote { host, id } = to
            && self.0.links.has(host)
        {
            self.0.around.out().send(host.node, PeerMessage::Answer(Answer { id, outcome }));
        }
    }

    /// Whether there is anything to do.
    #[inline]
    #[must_use]
    pub fn are_any(&self) -> bool {
        let (out, others) = (self.0.around.outbox(), self.0.to_close.len() | self.0.onward.len());
        let of_members = out.messages.len() | out.replies.len() | out.coordinator.len();
        (of_members | others | objects::waiting_actions(&self.0.objects)) != 0
    }

    /// The next thing to do, as [`Host::poll_action`] says.
    fn next(&mut self) -> Option<Action> {
        if let Some((to, message)) = self.next_message() {
            return Some(Action::Send { to, message });
        }
        if let Some(message) = self.0.around.out().coordinator.pop_front() {
            return Some(Action::Coordinator(Box::new(message)));
        }
        if let Some((token, outcome)) = self.next_answer() {
            return Some(Action::Reply { token, outcome });
        }
        if let Some((to, message)) = self.next_message() {
            return Some(Action::Send { to, message });
        }
        let Host { onward, objects, to_close, .. } = &mut *self.0;
        let news = onward.poll().or_else(|| objects.transfers().poll_news().map(Action::from));
        let news = news.or_else(|| objects.transfers().poll_step());
        news.or_else(|| to_close.pop_front().map(|(peer, why)| Action::Close { peer, why }))
    }
}
