#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <functional>
#include <optional>

#include "bindings/argument.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/comm/bootstrap/text_gather.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/group/local_ranks.hpp"
#include "waywiser/group/split_apart.hpp"
#include "waywiser/transport/tls/kernel_tls.hpp"
#include "waywiser/transport/tls/libssl.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

// Ctrl-C in a wait.
bool signal_came() {
  const nb::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0;
}

Group join_with(JoinOptions options, const Argument<std::optional<double>>& timeout, const Gpus* gpus,
                const Argument<std::optional<std::string>>& on_failure, const Argument<std::optional<bool>>& encrypt,
                const Argument<std::optional<bool>>& progress_thread, const Argument<bool>& threads,
                const Argument<std::optional<int>>& max_ctas) {
  options.threads = threads("threads");
  options.max_ctas = max_ctas("max_ctas");
  options.timeout = timeout("timeout");
  options.encrypt = encrypt("encrypt");
  options.progress_thread = progress_thread("progress_thread");
  if (const auto& word = on_failure("on_failure")) options.on_failure = parse_on_failure(*word);
  if (gpus != nullptr) options.platform = gpus->platform;
  options.open_platform = usual_options().open_platform;
  options.interrupted = signal_came;
  std::optional<Group> group;
  without_gil([&] { group.emplace(Group::join(options)); });
  return std::move(*group);
}

Group join(const Argument<std::optional<double>>& timeout, const Gpus* gpus,
           const Argument<std::optional<std::string>>& on_failure, const Argument<std::optional<bool>>& encrypt,
           const Argument<std::optional<bool>>& progress_thread, const Argument<bool>& threads,
           const Argument<std::optional<int>>& max_ctas) {
  return join_with({}, timeout, gpus, on_failure, encrypt, progress_thread, threads, max_ctas);
}

using Seat = std::tuple<std::string, int, int>;                     // launcher, rank, size
using Where = std::tuple<std::string, std::uint16_t, std::string>;  // host, port, secret

Group join_at(const Seat& seat, const std::string& job, const Where& where, const nb::object& announce,
              const Argument<std::optional<double>>& timeout, const Gpus* gpus,
              const Argument<std::optional<std::string>>& on_failure, const Argument<std::optional<bool>>& encrypt,
              const Argument<std::optional<bool>>& progress_thread, const Argument<bool>& threads,
              const Argument<std::optional<int>>& max_ctas) {
  const auto& [launcher, rank, size] = seat;
  const auto& [host_name, port, secret] = where;
  JoinOptions options;
  options.launch = Launch{launcher, rank, size, job, Endpoint{host_name, port}, secret};
  if (!announce.is_none())
    options.announce = [&announce](const Endpoint& root) {
      const nb::gil_scoped_acquire acquired;
      announce(root.port);
    };
  return join_with(std::move(options), timeout, gpus, on_failure, encrypt, progress_thread, threads, max_ctas);
}

std::size_t wait_any_of(const std::vector<PyFuture*>& futures) {
  std::vector<Future*> all;
  for (PyFuture* each : futures) all.push_back(each->future());
  std::size_t place = 0;
  without_gil([&] { place = wait_any(all); });
  let_go_of_objects();
  return place;
}

nb::bytes new_unique_id(const Argument<std::string>& towards) {
  const UniqueId id = make_unique_id(towards("towards"));
  return nb::bytes(reinterpret_cast<const char*>(id.data()), id.size());
}

Group join_by_id(const nb::bytes& id, const Argument<int>& rank, const Argument<int>& size,
                 const Argument<std::optional<double>>& timeout, const Gpus* gpus,
                 const Argument<std::optional<std::string>>& on_failure, const Argument<std::optional<bool>>& encrypt,
                 const Argument<std::optional<bool>>& progress_thread, const Argument<bool>& threads,
                 const Argument<std::optional<int>>& max_ctas) {
  UniqueId bytes{};
  if (id.size() != bytes.size())
    throw Error(ErrorKind::invalid_input, "a unique id has 128 bytes, not " + std::to_string(id.size()));
  std::memcpy(bytes.data(), id.data(), bytes.size());
  JoinOptions options;
  options.launch = launch_by(bytes, rank("rank"), size("size"));
  return join_with(std::move(options), timeout, gpus, on_failure, encrypt, progress_thread, threads, max_ctas);
}

template <typename Divide>
std::optional<Group> divided(Divide divide, Group& group, const Argument<int>& color, const Argument<int>& key) {
  const int of = color("color"), place = key("key");
  std::optional<Group> part;
  without_gil([&] { part = std::invoke(divide, group, of, place); });
  return part;
}

// Its methods are called no more: it is moved to where it lives until the process ends.
void end(Group& group) {
  without_gil([&] { leave_to_end(group); });
}

// Rank and size of a job whose ranks can meet.
std::pair<int, int> seat() {
  const Launch launch = read_launch();
  return {launch.rank, launch.size};
}

std::vector<std::string> gather_texts_here(const std::string& mine, double seconds) {
  const nb::gil_scoped_release released;
  return gather_texts(read_launch(), mine, Deadline::in(seconds));
}

}  // namespace

void bind_comm(nb::module_& m) {
  nb::class_<PyFuture>(m, "Future", "Something that a group has begun; keeps its arrays.")
      .def("done", &PyFuture::done)
      .def("wait", &PyFuture::wait);
  m.def("wait_any", wait_any_of, "futures"_a, "The place of the first future that is done. Raises Error.");
  auto type = nb::class_<Group>(m, "Group", "A rank's view of its group. See waywiser.Group.");
  type.def_prop_ro("rank", &Group::rank)
      .def_prop_ro("size", &Group::size)
      .def_prop_ro("local_rank", [](const Group& self) { return local_rank(self); })
      .def_prop_ro("local_size", [](const Group& self) { return local_size(self); })
      .def_prop_rw("timeout", &Group::timeout,
                   [](Group& self, const Argument<double>& seconds) { self.set_timeout(seconds("timeout")); })
      .def("close", [](Group& self) { without_gil([&] { self.close(); }); })
      .def("end", end)
      .def("hold", [](const Group& self) { hold(self); })
      .def("let_go", [](const Group& self) { let_go(self); })
      .def(
          "encrypted_by", [](const Group& self, const Argument<int>& rank) { return self.encrypted_by(rank("rank")); },
          "rank"_a.none())
      .def("authenticated", [](const Group& self) { return authenticated(self); })
      .def(
          "abort", [](Group& self, const Argument<std::string>& why) { self.abort(why("why")); }, "why"_a.none())
      .def("failure", &Group::failure)
      .def(
          "split",
          [](Group& self, const Argument<int>& color, const Argument<int>& key) {
            return divided(&Group::split, self, color, key);
          },
          "color"_a.none(), "key"_a.none())
      .def(
          "split_apart",
          [](Group& self, const Argument<int>& color, const Argument<int>& key) {
            return divided(split_apart, self, color, key);
          },
          "color"_a.none(), "key"_a.none())
      .def(
          "split_by_machine",
          [](Group& self, const Argument<int>& key) {
            const int place = key("key");
            std::optional<Group> part;
            without_gil([&] { part.emplace(split_by_machine(self, place)); });
            return std::move(*part);
          },
          "key"_a.none())
      .def(
          "synchronize",
          [](Group& self, nb::handle array, nb::handle stream) {
            const StreamUse use(self, stream, input(self, array).region.place);
            without_gil([&] { use.settle(self); });
          },
          "array"_a.none(), "stream"_a.none());
  bind_messages(m, type);
  bind_collectives(type);
  bind_prepared(m, type);
  bind_windows(m, type);
  bind_torch_calls(type);
  m.def(
      "runtime_folder", [] { return runtime_folder().string(); },
      "The private folder of running jobs; made if needed.");
  m.def("sweep_runtime_folder", sweep_runtime_folder, "Removes from it what dead processes have left. Raises nothing.");
  m.def("why_no_crypto", why_no_crypto, "What keeps OpenSSL's libcrypto from being used; empty when nothing does.");
  m.def("libcrypto_path", libcrypto_path, "The libcrypto that is used; empty without one.");
  m.def(
      "why_no_tls", [] { return ssl_library().why_not(); },
      "What keeps OpenSSL's libssl from being used; empty when nothing does.");
  m.def(
      "why_no_kernel_tls", [] { return why_no_kernel_tls(); },
      "Why the kernel cannot encrypt connections; empty: it can, where OpenSSL asks for it.");
  m.def("libssl_path", [] { return ssl_library().path(); }, "The libssl that is used; empty without one.");
  m.def("seat", seat, "Rank and size, when the ranks of this job can meet. Raises Error that says why they cannot.");
  m.def("gather_texts", gather_texts_here, "mine"_a, "seconds"_a,
        "The texts of all ranks of this job at rank 0, an empty list at the others; without UCX. Raises Error.");
  m.def("join", join, "timeout"_a.none() = nb::none(), "gpus"_a.none() = nb::none(), "on_failure"_a.none() = nb::none(),
        "encrypt"_a.none() = nb::none(), "progress_thread"_a.none() = nb::none(), "threads"_a.none() = false,
        "max_ctas"_a.none() = nb::none(), "The group of all ranks of this job. Raises Error.");
  m.def("new_unique_id", new_unique_id, "towards"_a.none(),
        "What ranks need to meet without a launcher. Raises Error.");
  m.def("join_by_id", join_by_id, "id"_a, "rank"_a.none(), "size"_a.none(), "timeout"_a.none(), "gpus"_a.none(),
        "on_failure"_a.none() = nb::none(), "encrypt"_a.none() = nb::none(), "progress_thread"_a.none() = nb::none(),
        "threads"_a.none() = false, "max_ctas"_a.none() = nb::none(),
        "The group of the ranks that have the id. Raises Error.");
  m.def("join_at", join_at, "seat"_a, "job"_a, "where"_a, "announce"_a.none(), "timeout"_a.none(), "gpus"_a.none(),
        "on_failure"_a.none() = nb::none(), "encrypt"_a.none() = nb::none(), "progress_thread"_a.none() = nb::none(),
        "threads"_a.none() = false, "max_ctas"_a.none() = nb::none(),
        "The same where another library has started the ranks; `announce` hears the port of rank 0.");
}
