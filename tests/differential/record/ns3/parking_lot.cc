// A parking lot of three links in ns-3: one long NewReno flow over all of them, one cross flow over each.
//
// Prints a line of CSV: delay of a link and time between starts in ms, payload of each flow in Mbit/s (the long one first), drops of each queue.
// Segments of 1,448 bytes, SACK, timestamps, initial window 10, DelAckCount 1, a device queue of one packet below a FIFO
// queue discipline of 50. Access links of 10 Gbit/s without delay.

#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

int main(int argc, char* argv[])
{
    double delay = 5;
    double seconds = 120;
    uint32_t stagger = 100;
    CommandLine cmd;
    cmd.AddValue("delay", "of each link, ms", delay);
    cmd.AddValue("stagger", "time between the starts of two flows, ms", stagger);
    cmd.AddValue("seconds", "length of the run", seconds);
    cmd.Parse(argc, argv);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64 << 20));

    NodeContainer routers;
    routers.Create(4);
    NodeContainer ends; // source and sink of each flow
    ends.Create(8);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(ends);

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(delay * 1000))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));

    std::vector<Ptr<QueueDisc>> queues;
    for (int i = 0; i < 3; ++i)
    {
        NetDeviceContainer devices = link.Install(routers.Get(i), routers.Get(i + 1));
        TrafficControlHelper forward;
        forward.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("50p"));
        queues.push_back(forward.Install(devices.Get(0)).Get(0));
        TrafficControlHelper back;
        back.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("100000p"));
        back.Install(devices.Get(1));
        addresses.Assign(devices);
        addresses.NewNetwork();
    }
    // Flow 0 goes from router 0 to router 3, flow i from router i - 1 to router i.
    const int from[] = {0, 0, 1, 2};
    const int to[] = {3, 1, 2, 3};
    std::vector<Ptr<PacketSink>> sinks;
    for (int flow = 0; flow < 4; ++flow)
    {
        addresses.Assign(access.Install(ends.Get(2 * flow), routers.Get(from[flow])));
        addresses.NewNetwork();
        NetDeviceContainer last = access.Install(ends.Get(2 * flow + 1), routers.Get(to[flow]));
        Ipv4Address address = addresses.Assign(last).GetAddress(0);
        addresses.NewNetwork();
        InetSocketAddress there(address, 5000);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        ApplicationContainer served = sink.Install(ends.Get(2 * flow + 1));
        sinks.push_back(DynamicCast<PacketSink>(served.Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", there);
        ApplicationContainer sent = bulk.Install(ends.Get(2 * flow));
        sent.Start(MilliSeconds(stagger * flow));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << delay << ',' << stagger;
    for (const auto& sink : sinks)
    {
        std::cout << ',' << sink->GetTotalRx() * 8e-6 / seconds;
    }
    for (const auto& queue : queues)
    {
        std::cout << ',' << queue->GetStats().nTotalDroppedPackets;
    }
    std::cout << '\n';
    Simulator::Destroy();
    return 0;
}
