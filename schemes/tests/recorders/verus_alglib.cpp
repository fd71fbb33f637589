// Prints what alglib's spline1dfitpenalized, which comes with Verus, gives for the points of `values_of_alglib`
// (schemes/src/verus/spline.rs): nodes, smoothing, and the curve at six places.
//
//   git clone https://github.com/yzaki/verus && cd verus/lib/alglib/src   # d4b447e
//   g++ -O2 -w -fpermissive -I. verus_alglib.cpp *.cpp -o verus_alglib && ./verus_alglib

#include <algorithm>
#include <cstdio>
#include <utility>

#include "interpolation.h"

int main() {
    for (auto [nodes, smoothing] : {std::pair{5, 2.0}, {10, -4.0}, {10, 2.0}, {30, 2.0}}) {
        alglib::real_1d_array x, y;
        x.setlength(150);
        y.setlength(150);
        for (int i = 0; i < 150; i++) {
            x[i] = i + 1;
            y[i] = 40 + std::max(0, i + 1 - 40);
        }
        alglib::ae_int_t info;
        alglib::spline1dinterpolant curve;
        alglib::spline1dfitreport report;
        alglib::spline1dfitpenalized(x, y, nodes, smoothing, info, curve, report);
        std::printf("%d %.1f", nodes, smoothing);
        for (double place : {0.0, 1.0, 40.0, 75.5, 150.0, 200.0}) {
            std::printf(" %.9f", alglib::spline1dcalc(curve, place));
        }
        std::printf("\n");
    }
}
