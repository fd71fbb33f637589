// Prints the table of schemes/src/vivace/recorded.rs: what the program of PCC-Uspace's branch NSDI-2018 decides on results
// that this file makes up. No part of the build.
//
//     git clone -b NSDI-2018 https://github.com/PCCproject/PCC-Uspace
//     mkdir stub && touch stub/udt.h stub/ccc.h && cp PCC-Uspace/pcc-gradient/sender/app/pcc.h .
//     g++ -std=c++11 -O1 -I stub vivace_nsdi2018.cpp && ./a.out 2> /dev/null | grep '^('

#include <cstdint>
#include <cstdio>
#include <vector>

// What the program uses of its transport.
struct CCC {
    virtual ~CCC() {}
    double m_dPktSndPeriod, m_dCWndSize;
    int m_iMSS = 1500;
    void setRTO(int) {}
};

#define private public
#define protected public
#include "pcc.h"

double PCC::kAlpha, PCC::kBeta, PCC::kExponent, PCC::kFactor, PCC::kStep;
double PCC::kLatencyCoefficient, PCC::kInitialBoundary, PCC::kBoundaryIncrement;
bool PCC::kPolyUtility;

static uint64_t state = 3;

static double uniform() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) / 2147483648.0;
}

int main() {
    // The program's defaults, with the latency term switched on.
    PCC::set_utility_params(1, 10.8, 0.9, true, 1.0, 0.05, 1, 0.05, 0.06);
    PCC pcc;
    const int packets = 1000, lag = 2, last = 160;
    std::vector<double> rates;
    for (int i = 0; i < last; ++i) {
        int length = 0, mss = 1500;
        double amplifier = 0;
        pcc.onMonitorStart(i, length, mss, amplifier);
        rates.push_back(pcc.rate());
        int lost = 0;
        double slope = 0;
        int ended = i - lag;
        if (ended >= 0) {
            double rate = rates[ended];
            double capacity = i < 40 ? 50 : i < 70 ? 200 : i < 90 ? 8 : i < 130 ? 100 : 3;
            double over = rate > capacity ? rate / capacity - 1 : 0;
            // The link is lossy, loses what is beyond its capacity, and in its second half has a queue besides.
            double share = 0.04 * uniform() + (over > 0 ? 1 - capacity / rate : 0);
            lost = (int)(packets * (share > 0.9 ? 0.9 : share));
            // For a while nothing disturbs it.
            bool quiet = i >= 40 && i < 70;
            if (quiet) lost = 0;
            // Half a hundredth away from where the program cuts.
            slope = quiet ? 0.005 : ((int)(4 * uniform()) - 1 + 0.5) / 100;
            if (i >= 90 && over > 0) slope += 0.04;
            pcc.onMonitorEnds(packets, lost, packets * 1500 * 8 / (rate * 1e6), i, ended, 40000, slope);
        }
        printf("(%.15g, %d, %.3f, %d, %.15g),\n", rates[i], lost, slope, (int)pcc.state_, pcc.base_rate_);
    }
}
