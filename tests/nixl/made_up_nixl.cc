// What NIXL does with a back end: made_up_nixl LIBRARY PLUGIN. LIBRARY stands for NIXL's own, for its version. Lines on
// standard input say what to do, "AGENT VERB WORDS"; each is answered by one line.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "nixl_interface.hpp"

using namespace made_up_nixl;

namespace {

constexpr int dram = 0, vram = 1;
constexpr std::chrono::seconds patience{20};

struct Learned {
  SpanWithKnown span;
  int kind = dram;
};
struct Memory {
  Span span;
  int kind = dram;
  Known* known = nullptr;
  Known* own_far_end = nullptr;  // of transfers within the agent
};

struct Agent {
  std::unique_ptr<BackEnd> back_end;
  std::map<std::string, Memory> memories;
  std::map<std::string, Learned> learned;  // "AGENT MEMORY"
  Pending* pending = nullptr;
  std::unique_ptr<KnownList> here, there;
  int way = 0;
  std::string to;
};

PlugIn* plug_in = nullptr;
std::map<std::string, Agent> agents;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text.empty() ? "-" : text;
}

std::string unhex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; text != "-" && i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string start(const std::string& name, std::istream& words) {
  Settings settings;
  std::string plan;
  if (words >> plan) settings["plan"] = plan;
  const Start made{name, "WAYWISER", &settings, false, 0, 0, false};
  BackEnd* back_end = plug_in->create(&made);
  if (back_end == nullptr) return "none";
  agents[name].back_end.reset(back_end);
  std::string about;
  const int status = back_end->connection(about);
  if (!back_end->remote() || !back_end->local() || !back_end->messages() || back_end->is_wrong() || status != 0 ||
      back_end->kind_of_back_end() != "WAYWISER" || back_end->connect(name) != 0)
    return "wrong";
  return hex(about);
}

// Between memory of this process and memory of a GPU, which only the driver can touch.
void copy_by_driver(const void* to, const void* from, std::size_t bytes) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  using Copy = int (*)(const void*, const void*, std::size_t);
  reinterpret_cast<Copy>(dlsym(library, "cuMemcpy"))(to, from, bytes);
}

void* allocate(int kind, std::size_t bytes) {
  if (kind == dram) return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* made = nullptr;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(library, "cuMemAlloc_v2"))(&made, bytes + 512);
  return static_cast<char*>(made) + 256;  // somewhere in its allocation
}

// "memory NAME BYTES VALUE [KIND]"
std::string memory(Agent& agent, std::istream& words) {
  std::string name;
  std::size_t bytes = 0;
  unsigned value = 0;
  int kind = dram;
  words >> name >> bytes >> value >> kind;
  std::vector<unsigned char> pattern(bytes);
  for (std::size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<unsigned char>(value + i * 31 + (i >> 12));
  void* at = allocate(kind, bytes);
  if (kind == dram)
    std::copy(pattern.begin(), pattern.end(), static_cast<unsigned char*>(at));
  else
    copy_by_driver(at, pattern.data(), bytes);
  SpanWithBlob span;
  span.at = reinterpret_cast<std::uintptr_t>(at);
  span.length = bytes;
  Memory made{span, kind, nullptr, nullptr};
  std::string blob;
  if (agent.back_end->add(span, kind, made.known) != 0 || agent.back_end->public_data(made.known, blob) != 0 ||
      agent.back_end->load_local(made.known, made.own_far_end) != 0)
    return "refused";
  agent.memories[name] = made;
  return std::to_string(span.at) + " " + std::to_string(bytes) + " " + hex(blob) + " " + std::to_string(kind);
}

std::string remove(Agent& agent, std::istream& words) {
  std::string name;
  words >> name;
  Memory& memory = agent.memories.at(name);
  const int unloaded = agent.back_end->unload(std::exchange(memory.own_far_end, nullptr));
  return std::to_string(unloaded) + " " + std::to_string(agent.back_end->remove(std::exchange(memory.known, nullptr)));
}

std::string unmap(const Agent& agent, std::istream& words) {
  std::string name;
  words >> name;
  const Span& span = agent.memories.at(name).span;
  return std::to_string(::munmap(reinterpret_cast<void*>(span.at), span.length));
}

std::string learn_memory(Agent& agent, std::istream& words) {
  std::string other, name, blob;
  SpanWithBlob span;
  int kind = dram;
  words >> other >> name >> span.at >> span.length >> blob >> kind;
  span.blob = unhex(blob);
  Known* known = nullptr;
  const int status = agent.back_end->load_remote(span, kind, other, known);
  if (status != 0) return std::to_string(status);
  Learned& learned = agent.learned[other + " " + name];
  if (learned.span.known != nullptr) agent.back_end->unload(learned.span.known);
  static_cast<Span&>(learned.span) = span;
  learned.span.known = known;
  learned.kind = kind;
  return std::to_string(status) + " " + std::to_string(span.length);
}

// read|write AGENT HERE OFFSET THERE OFFSET BYTES [COUNT STRIDE]
std::string prepare(const std::string& own, Agent& agent, std::istream& words) {
  std::string way, here, there;
  std::size_t here_at = 0, there_at = 0, bytes = 0, count = 1, stride = 0;
  words >> way >> agent.to >> here >> here_at >> there >> there_at >> bytes >> count >> stride;
  const bool within = agent.to == own;
  const Memory& mine = agent.memories.at(here);
  Learned chosen;
  if (within) {
    const Memory& memory = agent.memories.at(there);
    static_cast<Span&>(chosen.span) = memory.span;
    chosen.span.known = memory.own_far_end;
    chosen.kind = memory.kind;
  } else {
    chosen = agent.learned.at(agent.to + " " + there);
  }
  const SpanWithKnown& far = chosen.span;
  agent.here = std::make_unique<KnownList>(mine.kind);
  agent.there = std::make_unique<KnownList>(chosen.kind);
  for (std::size_t i = 0; i < count; ++i) {
    SpanWithKnown one, other;
    one.at = mine.span.at + here_at + i * stride;
    other.at = far.at + there_at + i * stride;
    one.length = other.length = bytes;
    one.known = mine.known;
    other.known = far.known;
    agent.here->add(one);
    agent.there->add(other);
  }
  agent.way = way == "read" ? 0 : 1;
  agent.pending = nullptr;
  return std::to_string(
      agent.back_end->prepare(agent.way, *agent.here, *agent.there, agent.to, agent.pending, nullptr));
}

std::string post(Agent& agent, std::istream& words) {
  Extra extra;
  extra.has_message = static_cast<bool>(words >> extra.message);
  return std::to_string(agent.back_end->post(agent.way, *agent.here, *agent.there, agent.to, agent.pending, &extra));
}

std::string wait(const Agent& agent) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  int status = 1;
  while ((status = agent.back_end->check(agent.pending)) == 1 && std::chrono::steady_clock::now() < deadline) {
  }
  return std::to_string(status);
}

std::string take(Agent& agent, std::istream& words) {
  std::size_t count = 0;
  words >> count;
  Messages taken;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (taken.size() < count && std::chrono::steady_clock::now() < deadline) agent.back_end->take(taken);
  std::string text;
  for (const auto& [from, message] : taken)
    text += (text.empty() ? "" : " ") + from + ":" + (message.size() > 40 ? std::to_string(message.size()) : message);
  return text;
}

std::string send(Agent& agent, std::istream& words) {
  std::string to, message;
  std::size_t longer = 0;
  words >> to >> message;
  if (words >> longer) message.resize(longer, 'x');
  return std::to_string(agent.back_end->send(to, message));
}

// A sum in which the place of a byte counts.
std::string sum(const Agent& agent, std::istream& words) {
  std::string name;
  std::size_t at = 0, bytes = 0;
  words >> name >> at >> bytes;
  const Memory& memory = agent.memories.at(name);
  const auto* first = reinterpret_cast<const unsigned char*>(memory.span.at + at);
  std::vector<unsigned char> copy(memory.kind == vram ? bytes : 0);
  if (memory.kind == vram) {
    copy_by_driver(copy.data(), first, bytes);
    first = copy.data();
  }
  std::uint64_t found = 14695981039346656037U;
  for (std::size_t i = 0; i < bytes; ++i) found = (found ^ first[i]) * 1099511628211U;
  return std::to_string(found);
}

std::string cost(const Agent& agent) {
  Micro time{}, margin{};
  int method = -1;
  const int status = agent.back_end->cost(agent.way, *agent.here, *agent.there, agent.to, agent.pending, time, margin,
                                          method, nullptr);
  return std::to_string(status) + " " + std::to_string(time.count()) + " " + std::to_string(method);
}

// As NIXL does: what is registered and known first.
std::string end_agent(const std::string& name) {
  Agent& agent = agents.at(name);
  if (agent.pending != nullptr) agent.back_end->release(agent.pending);
  for (auto& [_, learned] : agent.learned) agent.back_end->unload(learned.span.known);
  for (auto& [_, memory] : agent.memories)
    if (memory.known != nullptr) agent.back_end->unload(memory.own_far_end), agent.back_end->remove(memory.known);
  return std::to_string(agents.erase(name));
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  std::string name, verb, other, blob;
  words >> name >> verb;
  if (verb == "start") return start(name, words);
  Agent& agent = agents.at(name);
  if (verb == "memory") return memory(agent, words);
  if (verb == "remove") return remove(agent, words);
  if (verb == "unmap") return unmap(agent, words);
  if (verb == "learn" && words >> other >> blob)
    return std::to_string(agent.back_end->load_connection(other, unhex(blob)));
  if (verb == "learn_memory") return learn_memory(agent, words);
  if (verb == "forget" && words >> other) return std::to_string(agent.back_end->disconnect(other));
  if (verb == "prepare") return prepare(name, agent, words);
  if (verb == "post") return post(agent, words);
  if (verb == "wait") return wait(agent);
  if (verb == "release") return std::to_string(agent.back_end->release(std::exchange(agent.pending, nullptr)));
  if (verb == "take") return take(agent, words);
  if (verb == "send") return send(agent, words);
  if (verb == "sum") return sum(agent, words);
  if (verb == "cost") return cost(agent);
  if (verb == "end") return end_agent(name);
  return "?";
}

}  // namespace

int main(int, char** given) {
  if (dlopen(given[1], RTLD_NOW) == nullptr) return std::puts(dlerror()), 3;
  void* library = dlopen(given[2], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::puts(dlerror()), 3;
  auto* init = reinterpret_cast<PlugIn* (*)()>(dlsym(library, "nixl_plugin_init"));
  plug_in = init == nullptr ? nullptr : init();
  if (plug_in == nullptr) return std::puts("not loaded"), 0;
  std::printf("%s %d %zu\n", plug_in->name(), plug_in->interface, plug_in->kinds().size());
  for (std::string line; std::fflush(stdout), std::getline(std::cin, line);) std::puts(answer(line).c_str());
  while (!agents.empty()) end_agent(agents.begin()->first);
  return 0;
}
