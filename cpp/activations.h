// The activations of a feed-forward layer. Included by hot files.
#pragma once

#include "encoder.h"
#include "vec.h"

namespace firth {
namespace ISA {

static inline vec larger(vec a, vec b) { return choose(a > b, a, b); }
static inline vec smaller(vec a, vec b) { return choose(a < b, a, b); }

// x Φ(x) to 1e-6. Φ(x) = ½ + x q(x²) up to 5.3, where q is a polynomial of degree 14 in x² mapped to [-1, 1], fitted by
// least squares at Chebyshev points; beyond, Φ is 0 or 1 within 6e-8.
constexpr float GELU[] = {
    0.000275117985f, -0.000761715462f, 0.000761078496f, -0.00110510539f, 0.00309642451f,
    -0.00583836297f, 0.00885330047f,   -0.0131919552f,  0.0189174991f,   -0.0252965f,
    0.0320808217f,   -0.0395891406f,   0.0492640883f,   -0.0665185004f,  0.133392558f,
};

static inline vec gelu_vec(vec x) {
    const vec near = smaller(larger(x, splat(-5.3f)), splat(5.3f));
    const vec t = near * near * (2 / (5.3f * 5.3f)) - 1.0f;
    vec q = splat(GELU[0]);
    EACH (int i = 1; i < 15; ++i) q = q * t + GELU[i];
    return x * (0.5f + near * q);
}

static inline vec silu_vec(vec x) { return x / (1.0f + exp_vec(-x)); }

template <Activation activation>
static inline vec activate(vec x) {
    if constexpr (activation == Activation::relu) return larger(x, vec{});
    else if constexpr (activation == Activation::gelu) return gelu_vec(x);
    else if constexpr (activation == Activation::silu) return silu_vec(x);
    // ½ x (1 + tanh z) is x times the sigmoid of 2 z
    else return x / (1.0f + exp_vec(-1.59576912f * (x + 0.044715f * x * x * x)));
}

}  // namespace ISA
}  // namespace firth
