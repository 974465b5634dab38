import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ReceiverAdapter;

/** One process of bench/beside.py with JGroups: Order INDEX FILE PORT... */
public class Order extends ReceiverAdapter {
    static final int HEAD = 8, MEMBERS = 4, IN_FLIGHT = 1 << 20;
    static final double WARM = 2.0, COOL = 0.5;
    final int index;
    final List<Double> times = new ArrayList<>();
    double[] sentAt = new double[1 << 16];
    byte[] heads = new byte[1 << 24];
    volatile int length, own;
    Semaphore room;
    boolean lone;

    Order(int index) { this.index = index; }

    static double now() { return System.nanoTime() / 1e9; }

    static double cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    @Override public void receive(Message message) {
        byte[] buffer = message.getRawBuffer();
        int at = message.getOffset();
        if (length + HEAD > heads.length) heads = Arrays.copyOf(heads, heads.length * 2);
        System.arraycopy(buffer, at, heads, length, HEAD);
        length += HEAD;
        if (buffer[at] != index) return;
        if (lone) times.add(now() - sentAt[own]);
        own++;
        room.release();
    }

    public static void main(String[] given) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Order order = new Order(Integer.parseInt(given[0]));
        List<String> hosts = new ArrayList<>();
        for (int i = 2; i < given.length; i++) hosts.add("127.0.0.1[" + given[i] + "]");
        String stack = "TCP(bind_addr=127.0.0.1;bind_port=" + given[2 + order.index] + ";port_range=0;tcp_nodelay=true;"
            + "recv_buf_size=5M;send_buf_size=640K;use_send_queues=true;sock_conn_timeout=300;enable_bundling=true;"
            + "max_bundle_size=64000;max_bundle_timeout=2):"
            + "TCPPING(initial_hosts=" + String.join(",", hosts) + ";port_range=0;num_initial_members=4;timeout=2000):"
            + "MERGE2(min_interval=1000;max_interval=3000):FD(timeout=10000;max_tries=5):VERIFY_SUSPECT:BARRIER:"
            + "pbcast.NAKACK(use_mcast_xmit=false;retransmit_timeout=300,600,1200;discard_delivered_msgs=true):"
            + "UNICAST:pbcast.STABLE(stability_delay=1000;desired_avg_gossip=50000;max_bytes=4M):"
            + "pbcast.GMS(print_local_addr=false;join_timeout=3000):UFC(max_credits=2M):MFC(max_credits=2M):SEQUENCER:FRAG2";
        order.room = new Semaphore(0);
        JChannel channel = new JChannel(stack);
        channel.setReceiver(order);
        Thread.sleep(300L * order.index);
        channel.connect("order");
        double patience = now() + 30;
        while (channel.getView().size() < MEMBERS) {
            if (now() > patience) throw new IllegalStateException("the view is " + channel.getView());
            Thread.sleep(50);
        }
        out.println("ready");
        String load = new BufferedReader(new InputStreamReader(System.in)).readLine();
        order.lone = load.contains("true");
        double at = number(load, "at"), seconds = number(load, "seconds");
        int size = (int) number(load, "size"), sent = 0;
        double start = at + WARM, end = start + seconds, stop = end + COOL, due = at;
        boolean sends = !order.lone || order.index == MEMBERS - 1;
        order.room.release(Math.max(1, IN_FLIGHT / size));
        List<String> looks = new ArrayList<>();
        Thread looking = new Thread(() -> {
            for (double moment : new double[] {start, end}) {
                try { Thread.sleep((long) Math.max(0, (moment - now()) * 1000)); } catch (InterruptedException e) { return; }
                looks.add(String.format(Locale.ROOT, "[%f, %f, %d]", now(), cpu(), order.length / HEAD));
            }
        });
        looking.start();
        while (now() < at) Thread.sleep(1);
        while (sends && now() < stop) {
            if (order.lone) {
                due += 1.0 / 200;
                Thread.sleep((long) Math.max(0, (due - now()) * 1000));
                if (sent < order.sentAt.length) order.sentAt[sent] = now();
            }
            order.room.acquire();
            byte[] payload = new byte[size];
            ByteBuffer.wrap(payload).put((byte) order.index).position(4).putInt(sent++);
            channel.send(null, null, payload);
        }
        Thread.sleep((long) Math.max(0, (stop - now()) * 1000) + 3000);
        looking.join();
        Files.write(Paths.get(given[1]), Arrays.copyOf(order.heads, order.length));
        out.println("{\"looks\": " + looks + ", \"times\": " + order.times + "}");
        System.exit(0);
    }

    static double number(String load, String key) {
        String rest = load.substring(load.indexOf("\"" + key + "\":") + key.length() + 3);
        return Double.parseDouble(rest.split("[,}]")[0].trim());
    }
}
