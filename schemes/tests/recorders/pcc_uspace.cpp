// Prints schemes/tests/recorded/pcc_uspace_utilities.csv and pcc_uspace_decisions.csv: utilities and decisions of
// PCC-Uspace for intervals that this program makes up (g++ 12.2). Of a decision: up to four results, and the state and the
// rate after them. No part of the build.
//
//     git clone https://github.com/PCCproject/PCC-Uspace && git -C PCC-Uspace checkout cd43e34
//     g++ -std=c++11 -O1 -I PCC-Uspace/src/core -I PCC-Uspace/src/pcc pcc_uspace.cpp \
//         PCC-Uspace/src/pcc/pcc_sender.cpp PCC-Uspace/src/pcc/pcc_monitor_interval_queue.cpp && ./a.out

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <queue>
#include <sstream>
#include <vector>

// The two functions of interest are private.
#define private public
#include "pcc_sender.h"
#undef private

static uint64_t state = 1;

static double uniform() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) / 2147483648.0;
}

static void utilities(PccSender& sender) {
    printf("packets,lost,us,growth,utility\n");
    for (int i = 0; i < 10; ++i) {
        MonitorInterval interval(1e6, true, 0, 40000, 0);
        int packets = 10 + (int)(uniform() * 90);
        int lost = i % 3 == 0 ? 0 : (int)(uniform() * packets * 0.2);
        int micros = 20000 + (int)(uniform() * 60000);
        double growth = (uniform() - 0.5) * 0.4 * (i % 4 != 0);
        interval.first_packet_sent_time = 1000000;
        interval.last_packet_sent_time = 1000000 + micros;
        interval.n_packets = packets;
        interval.bytes_sent = packets * 1400;
        interval.bytes_lost = lost * 1400;
        for (int k = 0; k < packets - lost; ++k)
            interval.packet_rtt_samples.push_back(PacketRttSample(k, (long)(40000 * (1 + growth * k / packets))));
        sender.interval_queue_.CalculateUtility(&interval);
        printf("%d,%d,%d,%.9g,%.9g\n", packets, lost, micros, growth, (double)interval.utility);
    }
}

static void decisions(PccSender& sender) {
    printf("rate_1,utility_1,rate_2,utility_2,rate_3,utility_3,rate_4,utility_4,mode,rate_after\n");
    int up = 1;
    for (int i = 0; i < 40; ++i) {
        std::vector<UtilityInfo> results;
        double center = sender.sending_rate_;
        double peak = i < 26 ? 100 : 20;
        int trials = sender.mode_ == PccSender::PROBING ? 4 : 1;
        for (int k = 0; k < trials; ++k) {
            if (trials == 4) up = k % 2 ? -up : uniform() < 0.5 ? 1 : -1;
            double rate = trials == 4 ? center * (1 + 0.05 * up) : center;
            double utility = 200 - 1.5 * std::fabs(rate / 1048576.0 - peak) + 3.0 * (uniform() - 0.5);
            results.push_back(UtilityInfo(rate, utility));
        }
        sender.OnUtilityAvailable(results);
        for (auto& r : results) printf("%.15g,%.9g,", (double)r.sending_rate, (double)r.utility);
        for (int k = trials; k < 4; ++k) printf(",,");
        printf("%d,%.15g\n", (int)sender.mode_, (double)sender.sending_rate_);
    }
}

int main() {
    PccSender sender(10000, 10, 10);
    // What the program asks its queue for when a round of trials was in vain.
    sender.interval_queue_.EnqueueNewMonitorInterval(1, false, 0, 0, 0);
    utilities(sender);
    state = 7;
    decisions(sender);
}
