// Incompressible flow on unstructured meshes by any number of ranks: docs/apps/navier_stokes.md.
#include <charconv>
#include <cstdio>
#include <waywiser/group/group.hpp>

#include "apps/navier_stokes/run.hpp"
#include "apps/program.hpp"

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

apps::Options known_options() {
  return {"navier_stokes",
          {{"case", "cavity", joined(flow::case_names()) + ", or a .flow file that run.py has made of a case file"},
           {"cells", "0", "about so many in all; 0: as the case has"},
           {"shape", "even", joined(flow::shape_names()) + ": how cells of flat boxes lie"},
           {"reynolds", "0", "Reynolds number; 0: as the case has"},
           {"time", "0", "computes until then, by shorter steps if need be; 0: as the case has"},
           {"steps", "0", "computes so many time steps; 0: until the time"},
           {"step", "0", "length of a time step; 0: by the Courant number"},
           {"courant", "0.4", "greatest speed times step over the shortest distance of cells"},
           {"adaptive", "no", "yes: each step by the Courant number of the flow (--step: at most so long)"},
           {"tolerance", "1e-6", "of the linear solvers"},
           {"memory", "0",
            "time in which fluxes forget how they differ from the velocity in the cells; 0: as the case has"},
           {"iterations", "500", "of a linear solver in a step, at most: a flow that needs more ends unconverged"},
           {"face-reynolds", "500",
            "a flow ends unresolved if velocity difference times distance over viscosity of a face exceeds it; 0: any"},
           {"corrections", "-1", "more solves for the pressure in a step; -1: 1 on meshes that are not orthogonal"},
           {"whole-level", "-1",
            "cells of a level of the multigrid that each rank computes whole; -1: 131072 on GPUs, 1024 on hosts"},
           {"steady", "0", "ends when the velocity changes less than this in a unit of time"},
           {"exchange", "default", "default, auto (measured), or a variant of docs/halo.md"},
           {"tune", "0.05", "seconds for each exchange, with auto"},
           {"threads", "1", "of each rank"},
           {"output", "", "folder for results"},
           {"frames", "1", "of the time series for ParaView"},
           {"record", "10", "steps between lines of history.csv"},
           {"average-from", "", "means over time of the steps that begin at this time or later; empty: none"},
           {"checkpoint", "0", "steps between checkpoints; 0: none"},
           {"resume", "no", "yes: from the newest checkpoint in the folder, if there is one"},
           {"progress", "yes", "no: say nothing on the way"}}};
}

double real(const apps::Options& options, const std::string& name, double least, double most) {
  const std::string& text = options.text(name);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    apps::refuse("--" + name + " '" + text + "': a number from " + std::to_string(least) + " to " +
                 std::to_string(most));
  return value;
}

flow::RunOptions run_options(const apps::Options& options) {
  constexpr std::int64_t many = 2'000'000'000;
  flow::RunOptions made;
  made.wishes.name = options.text("case");
  if (!made.wishes.name.ends_with(".flow")) options.choice("case", flow::case_names());
  made.wishes.cells = options.integer("cells", 0, many / 4);
  made.wishes.shape = options.choice("shape", flow::shape_names());
  made.wishes.reynolds = real(options, "reynolds", 0, 1e9);
  made.time = real(options, "time", 0, 1e9);
  made.steps = options.integer("steps", 0, many);
  made.time_step = real(options, "step", 0, 1e9);
  made.courant = real(options, "courant", 1e-6, 100);
  made.adaptive = options.choice("adaptive", {"no", "yes"}) == "yes";
  made.tolerance = real(options, "tolerance", 1e-15, 0.1);
  made.memory = real(options, "memory", 0, 1e9);
  made.iterations = static_cast<int>(options.integer("iterations", 1, 1'000'000));
  made.face_reynolds = real(options, "face-reynolds", 0, 1e12);
  made.corrections = static_cast<int>(options.integer("corrections", -1, 100));
  made.whole_level = options.integer("whole-level", -1, many);
  made.steady = real(options, "steady", 0, 1e9);
  made.exchange = options.choice(
      "exchange", {"default", "auto", "whole_field", "per_neighbor", "packed", "direct", "strided", "gpu_aware"});
  made.tune_seconds = real(options, "tune", 0, 60);
  made.threads = static_cast<int>(options.integer("threads", 1, 1024));
  made.folder = options.text("output");
  made.frames = options.integer("frames", 1, many);
  made.record = options.integer("record", 1, many);
  if (!options.text("average-from").empty()) made.average_from = real(options, "average-from", 0, 1e9);
  made.checkpoint = options.integer("checkpoint", 0, many);
  made.resume = options.choice("resume", {"no", "yes"}) == "yes";
  made.progress = options.choice("progress", {"no", "yes"}) == "yes";
  if (made.folder.empty() && (made.checkpoint > 0 || made.resume)) apps::refuse("checkpoints need a folder: --output");
  return made;
}

}  // namespace

int main(int count, char** words) {
  return apps::run_program(count, words, known_options(), [](waywiser::Group& group, const apps::Options& options) {
    const flow::RunResult result = flow::run(group, run_options(options));
    if (group.rank() == 0) std::fputs(result.report.c_str(), stdout);
    if (!result.reason.empty()) throw apps::NoResult(result.reason);
  });
}
