// Prints schemes/tests/recorded/vivace_binary.csv: what the binary that Pantheon runs decides on results that this file
// makes up (g++ 12.2). No part of the build, and no packet is sent: the file is loaded before the binary's own library, and
// runs where the binary starts its transport.
//
//     git clone https://github.com/StanfordSNR/vivace && git -C vivace checkout 2baf862
//     g++ -O1 -shared -fPIC -o record.so vivace_binary.cpp
//     LD_PRELOAD=./record.so LD_LIBRARY_PATH=vivace/sender vivace/sender/vivace_sender 127.0.0.1 1

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Functions of the binary and places in its controller, by its own symbols and debugging information.
static void *(*const create)(void *) = (void *(*)(void *))0x403a70;
static void (*const on_monitor_start)(void *, int, int &, int &, double &) =
    (void (*)(void *, int, int &, int &, double &))0x403fd0;
static void (*const on_monitor_ends)(void *, int, int, double, int, int, double, double) =
    (void (*)(void *, int, int, double, int, int, double, double))0x402630;
static const int base_rate = 304, state = 328, rate = 392;

static uint64_t seed = 3;

static double uniform() {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) / 2147483648.0;
}

namespace UDT {
int startup() {
    char *pcc = (char *)create(nullptr);
    srand(1);
    const int packets = 1000, bytes = 1400, lag = 2, last = 160;
    std::vector<double> rates;
    printf("rate_mbps,lost_of_1000,slope,state,base_mbps\n");
    for (int i = 0; i < last; ++i) {
        int length = 0, mss = 0;
        double amplifier = 0;
        on_monitor_start(pcc, i, length, mss, amplifier);
        rates.push_back(*(double *)(pcc + rate));
        int lost = 0;
        double slope = 0;
        int ended = i - lag;
        if (ended >= 0) {
            double sent = rates[ended];
            double capacity = i < 40 ? 50 : i < 70 ? 200 : i < 90 ? 8 : i < 130 ? 100 : 3;
            double over = sent > capacity ? sent / capacity - 1 : 0;
            // The link is lossy, loses what is beyond its capacity, and in its second half has a queue besides.
            double share = 0.04 * uniform() + (over > 0 ? 1 - capacity / sent : 0);
            lost = (int)(packets * (share > 0.9 ? 0.9 : share));
            // For a while nothing disturbs it.
            bool quiet = i >= 40 && i < 70;
            if (quiet) lost = 0;
            // Half a hundredth away from where the program cuts, and below its cut in the start.
            slope = quiet || i < 14 ? 0.005 : ((int)(4 * uniform()) - 1 + 0.5) / 100;
            if (i >= 90 && over > 0) slope += 0.04;
            on_monitor_ends(pcc, packets, lost, packets * bytes * 8 / (sent * 1e6), i, ended, 40000, slope);
        }
        printf("%.15g,%d,%.3f,%d,%.15g\n", rates[i], lost, slope, *(int *)(pcc + state),
               *(double *)(pcc + base_rate));
    }
    exit(0);
}
}
