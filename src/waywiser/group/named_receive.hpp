#pragma once

#include "waywiser/comm/rendezvous/transfer.hpp"

namespace waywiser {

// A receive whose source (call.peer), label and length are known; nullptr: it is complete. `head`: the header of the
// message, if it comes by rails and the header has been received.
std::shared_ptr<Activity> named_receive(Session& session, const Members& members, const Call& call,
                                        const Elements& data, int label, const MessageHead* head = nullptr);
// The same into host memory; complete when it returns.
void receive_named(Session& session, const Members& members, const Call& call, const Elements& data, int label);

}  // namespace waywiser
