#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {

// The client takes the stream for its own even if an earlier request has failed.
void RemoteWorker::carry_out(const requests::UseStream& use) {
  try {
    work_.use(use.number);
  } catch (const Error& error) {
    attempt("stream", [&] { throw Error(error); });
  }
}

void RemoteWorker::carry_out(const requests::Record& record) {
  attempt("record", [&] { work_.record(record.number); });
}

void RemoteWorker::carry_out(const requests::Wait& wait) {
  attempt("wait", [&] { work_.wait(wait.number); });
}

void RemoteWorker::carry_out(const requests::Await& await) {
  answer("event", [&](RemoteReply&) { work_.await(await.number); });
}

void RemoteWorker::carry_out(const requests::Since& since) {
  answer("event", [&](RemoteReply& told) { told.since = work_.since(since.later, since.earlier); });
}

void RemoteWorker::carry_out(const requests::OpenPlain& open) {
  bool is_announced = false;
  attempt("unencrypted arrays", [&] {
    channel_.open_plain(open.secret, [&](const std::string& address) {
      is_announced = true;
      RemoteReply told;
      told.address = address;
      reply(std::move(told));
    });
  });
  if (!is_announced) reply();
}

// Beyond its limits nothing of a client is carried out any more; it may read its last answers, and end.
void RemoteWorker::check_limits() {
  const ClientLimits& limits = setup_.limits;
  if (limits.requests != 0 && requests_ > limits.requests)
    attempt("request", [&] {
      throw Error(ErrorKind::unavailable,
                  "this server carries out " + std::to_string(limits.requests) + " requests of one client");
    });
  if (limits.seconds != 0 && now_seconds() - since_ > limits.seconds)
    attempt("request", [&] {
      throw Error(ErrorKind::unavailable, "this server serves one client for " + format_seconds(limits.seconds));
    });
}

}  // namespace waywiser
