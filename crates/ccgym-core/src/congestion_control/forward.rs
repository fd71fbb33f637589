//! Hooks that a wrapper forwards unchanged.

/// Within the `impl CongestionControl` of a wrapper: forwards the named hooks to the scheme inside. `$get` and
/// `$get_mut` return it as an `Option`, since an agent may have none.
#[macro_export]
macro_rules! forward_hooks {
    ($me:ident, $get:expr, $get_mut:expr; $($hook:ident)+) => {
        $($crate::forward_hooks!(@ $hook $me, $get, $get_mut);)+
    };
    (@ capabilities $me:ident, $get:expr, $get_mut:expr) => {
        fn capabilities(&$me) -> $crate::congestion_control::Capabilities {
            $get.map(|scheme| scheme.capabilities()).unwrap_or_default()
        }
    };
    (@ on_handshake $me:ident, $get:expr, $get_mut:expr) => {
        fn on_handshake(&mut $me, now: $crate::Timestamp, rtt_sample: $crate::TimeSpan) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_handshake(now, rtt_sample));
        }
    };
    (@ on_packet_sent $me:ident, $get:expr, $get_mut:expr) => {
        fn on_packet_sent(&mut $me, event: &$crate::congestion_control::SentEvent) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_packet_sent(event));
        }
    };
    (@ on_spurious_loss $me:ident, $get:expr, $get_mut:expr) => {
        fn on_spurious_loss(&mut $me, event: &$crate::congestion_control::SpuriousLossEvent) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_spurious_loss(event));
        }
    };
    (@ next_timer $me:ident, $get:expr, $get_mut:expr) => {
        fn next_timer(&$me) -> $crate::Timestamp {
            $get.map_or($crate::Timestamp::NEVER, |scheme| scheme.next_timer())
        }
    };
    (@ on_timer $me:ident, $get:expr, $get_mut:expr) => {
        fn on_timer(&mut $me, now: $crate::Timestamp) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_timer(now));
        }
    };
    (@ on_app_limited $me:ident, $get:expr, $get_mut:expr) => {
        fn on_app_limited(&mut $me, now: $crate::Timestamp, in_flight: u64) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_app_limited(now, in_flight));
        }
    };
    (@ on_idle_restart $me:ident, $get:expr, $get_mut:expr) => {
        fn on_idle_restart(&mut $me, now: $crate::Timestamp) {
            $get_mut.into_iter().for_each(|scheme| scheme.on_idle_restart(now));
        }
    };
    (@ send_quantum $me:ident, $get:expr, $get_mut:expr) => {
        fn send_quantum(&$me) -> u64 {
            $get.map_or(0, |scheme| scheme.send_quantum())
        }
    };
    (@ ssthresh $me:ident, $get:expr, $get_mut:expr) => {
        fn ssthresh(&$me) -> Option<u64> {
            $get.and_then(|scheme| scheme.ssthresh())
        }
    };
    (@ state $me:ident, $get:expr, $get_mut:expr) => {
        fn state(&$me) -> &'static str {
            $get.map_or("", |scheme| scheme.state())
        }
    };
    (@ observables $me:ident, $get:expr, $get_mut:expr) => {
        fn observables(&$me) -> $crate::congestion_control::Observables {
            $get.map(|scheme| scheme.observables()).unwrap_or_default()
        }
    };
    (@ media $me:ident, $get:expr, $get_mut:expr) => {
        fn media(&mut $me) -> Option<&mut dyn $crate::congestion_control::Media> {
            $get_mut.and_then(|scheme| scheme.media())
        }
    };
    (@ receiver_side $me:ident, $get:expr, $get_mut:expr) => {
        fn receiver_side(&mut $me) -> Option<&mut dyn $crate::congestion_control::ReceiverSide> {
            $get_mut.and_then(|scheme| scheme.receiver_side())
        }
    };
}
