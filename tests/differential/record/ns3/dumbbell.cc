// ccperf's dumbbell in ns-3: K flows over one bottleneck, in the configuration that repeats ccperf's experiment 85.
//
// Prints one JSON line: per flow payload (Mbit/s), mean smoothed round trip (ms), mean window (segments) and
// retransmissions; drops of the queue; wall-clock seconds of Simulator::Run. With --trace=FILE it also writes what
// happened: a line "seconds flow event value" for every packet sent, change of the window, and queue drop.
//
//     g++ -O2 -std=c++17 dumbbell.cc -o dumbbell -lns3-applications -lns3-internet -lns3-point-to-point
//         -lns3-traffic-control -lns3-network -lns3-core
//     ./dumbbell --rate=32Mbps --queue=40p --rtts=15,15 --algs=TcpNewReno,TcpNewReno

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace ns3
{
// Segments that an acknowledgement newly says have arrived, at most: as many as the receiver waits for.
uint32_t newly = 1;

// TcpLinuxReno by the rules of Linux that ns-3.37 departs from: the count of acknowledged segments begins again at a
// reduction (tcp_init_cwnd_reduction), and what was selectively acknowledged does not count again when it is covered.
class TcpRenoOfLinux : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("ns3::TcpRenoOfLinux").SetParent<TcpNewReno>().AddConstructor<TcpRenoOfLinux>();
        return id;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        m_count = 0;
        return std::max<uint32_t>(2 * state->m_segmentSize, state->m_cWnd.Get() / 2);
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        const uint32_t segment = state->m_segmentSize, window = state->m_cWnd;
        acked = std::min(acked, newly);
        if (window < state->m_ssThresh)
        {
            state->m_cWnd = std::min<uint32_t>(window + acked * segment, state->m_ssThresh);
            return;
        }
        m_count += acked;
        const uint32_t whole = std::max(window / segment, 1U);
        state->m_cWnd = window + m_count / whole * segment;
        m_count %= whole;
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpRenoOfLinux>(this);
    }

  private:
    uint32_t m_count = 0;
};

NS_OBJECT_ENSURE_REGISTERED(TcpRenoOfLinux);
} // namespace ns3

namespace
{
constexpr uint32_t MSS = 1448;

struct Flow
{
    Ptr<PacketSink> sink;
    Ptr<TcpSocketBase> socket;
    uint32_t number = 0;
    uint64_t retransmissions = 0;
    SequenceNumber32 sent{0};
    double window = 0;
    double rtt = 0;
    double windowArea = 0;
    double rttArea = 0;
    double rttTime = 0;
    double windowSince = 0;
    double rttSince = 0;

    void AddWindow()
    {
        const double now = Simulator::Now().GetSeconds();
        windowArea += window * (now - windowSince);
        windowSince = now;
    }

    void AddRtt()
    {
        const double now = Simulator::Now().GetSeconds();
        if (rtt > 0)
        {
            rttArea += rtt * (now - rttSince);
            rttTime += now - rttSince;
        }
        rttSince = now;
    }
};

std::vector<Flow> flows;
std::ofstream trace;

void Note(uint32_t flow, const char* event, double value)
{
    if (trace.is_open())
    {
        trace << Simulator::Now().GetNanoSeconds() / 1e9 << ' ' << flow << ' ' << event << ' ' << value << '\n';
    }
}

void WindowChanged(Flow* flow, uint32_t, uint32_t now)
{
    flow->AddWindow();
    flow->window = double(now) / MSS;
    Note(flow->number, "cwnd", flow->window);
}

void RttChanged(Flow* flow, Time, Time)
{
    // The trace is of the latest sample; the smoothed one is the transport's own, by RFC 6298.
    flow->AddRtt();
}

void Sent(Flow* flow, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (packet->GetSize() == 0)
    {
        return;
    }
    if (header.GetSequenceNumber() < flow->sent)
    {
        ++flow->retransmissions;
        Note(flow->number, "again", (header.GetSequenceNumber().GetValue() - 1) / MSS);
    }
    else
    {
        flow->sent = header.GetSequenceNumber() + packet->GetSize();
        Note(flow->number, "send", (header.GetSequenceNumber().GetValue() - 1) / MSS);
    }
}

void StateChanged(Flow* flow, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    Note(flow->number, "state", now);
}

void ThresholdChanged(Flow* flow, uint32_t, uint32_t now)
{
    Note(flow->number, "ssthresh", double(now) / MSS);
}

void InFlightChanged(Flow* flow, uint32_t, uint32_t now)
{
    Note(flow->number, "flight", double(now) / MSS);
}

void Dropped(Ptr<const QueueDiscItem>)
{
    Note(0, "drop", 1);
}

void Connect(Flow* flow, Ptr<Application> application)
{
    flow->socket = DynamicCast<TcpSocketBase>(DynamicCast<BulkSendApplication>(application)->GetSocket());
    flow->socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&WindowChanged, flow));
    flow->socket->TraceConnectWithoutContext("Tx", MakeBoundCallback(&Sent, flow));
    if (trace.is_open())
    {
        flow->socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&StateChanged, flow));
        flow->socket->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&ThresholdChanged, flow));
        flow->socket->TraceConnectWithoutContext("BytesInFlight", MakeBoundCallback(&InFlightChanged, flow));
    }
}

std::vector<std::string> Split(const std::string& text)
{
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');)
    {
        parts.push_back(part);
    }
    return parts;
}
} // namespace

int main(int argc, char* argv[])
{
    std::string rate = "32Mbps", later, discipline = "Fifo", queue = "40p", rtts = "15,15", traceFile;
    std::string algorithms = "TcpNewReno,TcpNewReno", access = "10Gbps", device = "1p", recovery = "TcpPrrRecovery";
    double loss = 0, seconds = 15, at = 3.75;
    uint32_t acks = 1, window = 10, buffer = 4 << 20;
    uint64_t draw = 1;
    CommandLine cmd;
    cmd.AddValue("rate", "of the bottleneck", rate);
    cmd.AddValue("later", "its rate from --at on; empty: it does not change", later);
    cmd.AddValue("at", "when it changes, s", at);
    cmd.AddValue("discipline", "of the bottleneck's queue: Fifo or CoDel", discipline);
    cmd.AddValue("queue", "its limit", queue);
    cmd.AddValue("rtts", "round trip of each flow, ms", rtts);
    cmd.AddValue("algs", "congestion control of each flow", algorithms);
    cmd.AddValue("loss", "share of packets lost at random behind the bottleneck", loss);
    cmd.AddValue("draw", "number of the random run", draw);
    cmd.AddValue("seconds", "length of the run", seconds);
    cmd.AddValue("access", "rate of the access links", access);
    cmd.AddValue("device", "queue of the bottleneck's device, below the discipline", device);
    cmd.AddValue("recovery", "rule of fast recovery", recovery);
    cmd.AddValue("acks", "segments per acknowledgement", acks);
    cmd.AddValue("window", "initial window, segments", window);
    cmd.AddValue("buffer", "of the sender's socket, bytes", buffer);
    cmd.AddValue("trace", "file to write what happens to", traceFile);
    cmd.Parse(argc, argv);
    newly = acks;
    const auto names = Split(algorithms);
    const auto trips = Split(rtts);
    RngSeedManager::SetSeed(42);
    RngSeedManager::SetRun(draw);
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName("ns3::" + recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(acks));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64 << 20));

    NodeContainer routers;
    routers.Create(2);
    InternetStackHelper stack;
    stack.Install(routers);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue("0ms"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(device));
    NetDeviceContainer devices = link.Install(routers);
    // The way back is no constraint.
    devices.Get(1)->SetAttribute("DataRate", StringValue(access));
    TrafficControlHelper forward;
    forward.SetRootQueueDisc("ns3::" + discipline + "QueueDisc", "MaxSize", StringValue(queue));
    Ptr<QueueDisc> bottleneck = forward.Install(devices.Get(0)).Get(0);
    TrafficControlHelper back;
    back.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("100000p"));
    back.Install(devices.Get(1));
    if (loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
    if (!later.empty())
    {
        Simulator::Schedule(Seconds(at), [&] { devices.Get(0)->SetAttribute("DataRate", StringValue(later)); });
    }
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(devices);
    addresses.NewNetwork();

    flows.resize(names.size());
    if (!traceFile.empty())
    {
        trace.open(traceFile);
        trace.precision(12);
        bottleneck->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    }
    for (uint32_t i = 0; i < names.size(); ++i)
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + names[i])));
        NodeContainer ends;
        ends.Create(2);
        stack.Install(ends);
        PointToPointHelper wire;
        wire.SetDeviceAttribute("DataRate", StringValue(access));
        const double trip = std::stod(trips[i % trips.size()]);
        wire.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(trip * 1000 / 4))));
        wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
        addresses.Assign(wire.Install(ends.Get(0), routers.Get(0)));
        addresses.NewNetwork();
        Address there;
        {
            Ipv4Address address = addresses.Assign(wire.Install(ends.Get(1), routers.Get(1))).GetAddress(0);
            addresses.NewNetwork();
            there = InetSocketAddress(address, 5000);
        }
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        flows[i].number = i + 1;
        flows[i].sink = DynamicCast<PacketSink>(sink.Install(ends.Get(1)).Get(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", there);
        bulk.SetAttribute("SendSize", UintegerValue(MSS));
        Ptr<Application> application = bulk.Install(ends.Get(0)).Get(0);
        application->SetStartTime(Seconds(0));
        Simulator::Schedule(NanoSeconds(1), &Connect, &flows[i], application);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;

    std::cout << "{\"wall_s\": " << wall.count() << ", \"drops\": " << bottleneck->GetStats().nTotalDroppedPackets
              << ", \"flows\": [";
    for (auto& flow : flows)
    {
        flow.AddWindow();
        std::cout << (flow.number > 1 ? ", " : "") << "{\"throughput_mbps\": "
                  << flow.sink->GetTotalRx() * 8e-6 / seconds << ", \"window\": " << flow.windowArea / seconds
                  << ", \"retransmissions\": " << flow.retransmissions << '}';
    }
    std::cout << "]}\n";
    Simulator::Destroy();
    return 0;
}
