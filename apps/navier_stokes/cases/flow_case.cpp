#include "apps/navier_stokes/cases/flow_case.hpp"

#include <algorithm>
#include <numbers>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/cases/prepared_case.hpp"
#include "apps/navier_stokes/mesh/generators.hpp"

namespace flow {
namespace {

using std::numbers::pi;

BoxCells shape_of(const CaseWishes& wishes) {
  if (wishes.shape == "triangles") return BoxCells::triangles;
  return wishes.shape == "perturbed" ? BoxCells::perturbed : BoxCells::even;
}

// A flat box of squares, about `cells` of them, or of as many triangles.
Box flat_box(const CaseWishes& wishes, std::int64_t usual, double length, double height) {
  const double cells = static_cast<double>(wishes.cells > 0 ? wishes.cells : usual);
  const bool triangles = shape_of(wishes) == BoxCells::triangles;
  const double across = std::sqrt(cells / (triangles ? 2 : 1) * height / length);
  Box box;
  box.cells = {2 * std::max<Index>(2, static_cast<Index>(std::lround(across * length / height / 2))),
               2 * std::max<Index>(2, static_cast<Index>(std::lround(across / 2))), 0};
  box.size = {length, height, 0};
  box.shape = shape_of(wishes);
  return box;
}

// A square box whose lid moves: Ghia, Ghia and Shin (1982).
FlowCase cavity(const CaseWishes& wishes) {
  FlowCase made;
  made.mesh = box(flat_box(wishes, 4096, 1, 1));
  made.boundary_at = [](const BorderFace& face) {
    return BoundaryCondition{{face.center.y > 1 - 1e-9 ? 1.0 : 0.0, 0, 0}, false, false};
  };
  made.start = [](const Vector3&) { return Vector3{}; };
  made.time = 40;
  return made;
}

// Between two walls at distance 1, of mean velocity 1; it enters with the velocity of the exact solution.
FlowCase poiseuille(const CaseWishes& wishes) {
  FlowCase made;
  made.mesh = box(flat_box(wishes, 512, 2, 1));
  const auto parabola = [](const Vector3& at) { return Vector3{6 * at.y * (1 - at.y), 0, 0}; };
  made.boundary_at = [parabola](const BorderFace& face) {
    const Vector3& at = face.center;
    return BoundaryCondition{at.x < 1e-9 ? parabola(at) : Vector3{}, at.x > 2 - 1e-9, false};
  };
  made.start = [](const Vector3&) { return Vector3{1, 0, 0}; };
  made.exact = [parabola](const Vector3& at, double) { return parabola(at); };
  made.speed = 1.5;
  made.reynolds = 10;
  made.time = 10;
  return made;
}

// Vortices in a periodic square of side 2 pi that decay as exp(-2 t / Reynolds number), carried by a uniform wind so
// that convection does not cancel out: Taylor and Green (1937).
FlowCase taylor_green(const CaseWishes& wishes) {
  FlowCase made;
  Box square = flat_box(wishes, 1024, 2 * pi, 2 * pi);
  square.periodic = {true, true, false};
  made.mesh = box(square);
  made.reynolds = wishes.reynolds > 0 ? wishes.reynolds : 10;
  made.exact = [nu = 1 / made.reynolds](const Vector3& at, double time) {
    const double x = at.x - time, y = at.y - time / 2, decay = std::exp(-2 * nu * time);
    return Vector3{1 + std::cos(x) * std::sin(y) * decay, 0.5 - std::sin(x) * std::cos(y) * decay, 0};
  };
  made.start = [exact = made.exact](const Vector3& at) { return exact(at, 0); };
  made.speed = 2;
  made.time = 1;
  return made;
}

// A cylinder of diameter 1 in a wind of velocity 1, which is disturbed at the beginning so that vortices shed soon.
FlowCase cylinder(const CaseWishes& wishes) {
  constexpr double far = 25;
  FlowCase made;
  const double cells = static_cast<double>(wishes.cells > 0 ? wishes.cells : 16384);
  const auto side = static_cast<Index>(std::lround(std::sqrt(cells)));
  if (wishes.shape != "even")
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a cylinder has cells of even shape only");
  made.mesh = ring(std::max<Index>(side, 8), std::max<Index>(side, 4), far);
  made.boundary_at = [](const BorderFace& face) {
    const Vector3& at = face.center;
    const bool body = norm(at) < 1;
    return BoundaryCondition{{body ? 0.0 : 1.0, 0, 0}, !body && at.x > 0, body};
  };
  made.start = [](const Vector3& at) {
    const double r = norm(at), swirl = 0.3 * std::exp(-(r - 1) * (r - 1));
    return Vector3{1 - swirl * at.y / r, swirl * at.x / r, 0};
  };
  made.speed = 0.8;  // where cells are smallest, behind the cylinder
  made.time = 90;
  return made;
}

// Cells of a duct whose cross section is swept: about as many as are wished for, about as long as wide.
Bend duct(const CaseWishes& wishes, std::int64_t usual, const std::string& what) {
  const double cells = static_cast<double>(wishes.cells > 0 ? wishes.cells : usual);
  if (wishes.shape != "even")
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a " + what + " has cells of even shape only");
  Bend made;
  made.across = 2 * std::max<Index>(1, static_cast<Index>(std::lround(std::cbrt(cells / 22.5) / 2)));
  made.along = std::max<Index>(4, static_cast<Index>(std::lround(cells / (3.0 * made.across * made.across))));
  return made;
}

// Through a duct from x = 0 to the height of its outlet: it enters as it does in a long straight pipe of diameter 1,
// with mean velocity 1, and turns around the axis with up to `swirl`.
void through(FlowCase& made, const Bend& duct, double swirl) {
  const double end = duct.radius + duct.outlet;
  made.boundary_at = [end, swirl](const BorderFace& face) {
    const Vector3& at = face.center;
    BoundaryCondition condition;
    const double inside = std::max(0.0, 1 - 4 * (at.y * at.y + at.z * at.z));
    const double turn = 3 * std::sqrt(3.0) * swirl * inside;  // r (1 - 4 r^2) is 1 / (3 sqrt 3) at most
    if (at.x < 1e-9) condition.velocity = {2 * inside, -turn * at.z, turn * at.y};
    condition.outlet = at.y > end - 1e-9;
    return condition;
  };
  made.start = [](const Vector3&) { return Vector3{}; };
  made.speed = 2.5;
  made.time = 20;
}

FlowCase bend(const CaseWishes& wishes) {
  FlowCase made;
  const Bend pipe = duct(wishes, 20000, "bend");
  made.mesh = pipe_bend(pipe);
  through(made, pipe, 0);
  made.reynolds = 400;
  return made;
}

// The water turns, as it does behind a turbine.
FlowCase draft_tube(const CaseWishes& wishes) {
  FlowCase made;
  const Bend tube = duct(wishes, 20000, "draft tube");
  made.mesh = draft_tube(tube);
  through(made, tube, 0.3);
  made.reynolds = 200;
  return made;
}

}  // namespace

std::vector<std::string> case_names() {
  return {"cavity", "poiseuille", "taylor_green", "cylinder", "bend", "draft_tube"};
}
std::vector<std::string> shape_names() { return {"even", "perturbed", "triangles"}; }

FlowCase flow_case(const CaseWishes& wishes) {
  FlowCase (*const cases[])(const CaseWishes&) = {cavity, poiseuille, taylor_green, cylinder, bend, draft_tube};
  const auto names = case_names();
  if (wishes.name.ends_with(".flow")) return prepared_case(wishes.name);
  const auto found = std::ranges::find(names, wishes.name);
  if (found == names.end())
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "there is no case '" + wishes.name + "'");
  FlowCase made = cases[found - names.begin()](wishes);
  if (wishes.reynolds > 0) made.reynolds = wishes.reynolds;
  made.viscosity = 1 / made.reynolds;
  return made;
}

}  // namespace flow
