#pragma once

#include "apps/navier_stokes/solver/flow_mesh.hpp"

namespace flow {

// The finite-volume operators, as loops on the processor. Vectors have three components, gradients of vectors nine: the
// gradients of the components one after the other. Ghosts of what is read must be filled; owned cells are written.

void compute_velocity_gradient(apps::Processor& processor, const FlowMesh::View& mesh, const double* velocity,
                               double* gradient);
void compute_pressure_gradient(apps::Processor& processor, const FlowMesh::View& mesh, const double* pressure,
                               double* gradient);

// result = - convection of the velocity by the flux + the non-orthogonal part of diffusion, both times the volume. With
// the viscosity of eddies in the cells, also all of its stress; nullptr: there is none. `at_faces` is memory for three
// values a face.
void compute_explicit_terms(apps::Processor& processor, const FlowMesh::View& mesh, double viscosity,
                            const double* eddy, const double* velocity, const double* gradient, const double* flux,
                            double* at_faces, double* result);

// result = sum over faces of coefficient * (outside - inside) of the velocity, with given values at borders; times
// `share`, which counts the given values `border_share` times.
void add_diffusion(apps::Processor& processor, const FlowMesh::View& mesh, const Matrix::View& matrix, double share,
                   double border_share, const double* velocity, double* result);

// The first part of a flux for a new velocity: what its linear interpolation leaves out because a face's center lies
// beside the line between its cells, and a share of what the present flux has beyond the interpolated `velocity`.
// `skew_flux` is the first of these, of the step before.
void keep_flux(apps::Processor& processor, const FlowMesh::View& mesh, double share, const double* velocity,
               const double* gradient, double* skew_flux, double* flux);
// flux += velocity, linear between two cells, times the area of the face; given values at borders.
void add_flux(apps::Processor& processor, const FlowMesh::View& mesh, const double* velocity, double* flux);
// result = flux - time_step * the non-orthogonal part of the pressure's flux.
void take_pressure_correction(apps::Processor& processor, const FlowMesh::View& mesh, double time_step,
                              const double* pressure_gradient, const double* flux, double* result);
// flux -= time_step * coefficient * (outside - inside) of the pressure.
void take_pressure_flux(apps::Processor& processor, const FlowMesh::View& mesh, double time_step,
                        const double* pressure, double* flux);
// result = factor * sum of the flux out of each cell.
void compute_divergence(apps::Processor& processor, const FlowMesh::View& mesh, double factor, const double* flux,
                        double* result);

}  // namespace flow
