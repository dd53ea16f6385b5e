#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "waywiser/measure/campaign_options.hpp"

// Calls a Python progress function from code that runs without the GIL. An exception in it (Ctrl-C too) stops the work;
// rethrow() raises it afterwards, except KeyboardInterrupt, which only means to stop.
class [[gnu::visibility("hidden")]] ProgressBridge {
 public:
  explicit ProgressBridge(nanobind::object function) : function_(std::move(function)) {}

  waywiser::ProgressCallback callback() {
    if (function_.is_none()) return {};
    return [this](const waywiser::Progress& progress) { return call(progress); };
  }

  // With the GIL.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool call(const waywiser::Progress& progress) {
    const nanobind::gil_scoped_acquire acquired;
    try {
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
      const nanobind::object go_on = function_(waywiser::to_json(progress).dump());
      return go_on.is_none() || nanobind::cast<bool>(go_on);
    } catch (nanobind::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) failure_ = std::current_exception();
      return false;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  nanobind::object function_;
  std::exception_ptr failure_;
};
