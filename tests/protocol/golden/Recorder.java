// Writes messages with Apache Kafka's own classes: run by make.py, with Kafka's jars as class path.
// In: a line for each message, "<name> <version> <value as Kafka's JSON>". Out: its bytes in hex.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

public class Recorder {
    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split(" ", 3);
            short version = Short.parseShort(parts[1]);
            Message message = (Message) Class
                .forName("org.apache.kafka.common.message." + parts[0] + "JsonConverter")
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, new ObjectMapper().readTree(parts[2]), version);
            ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[written.remaining()];
            written.get(bytes);
            System.out.println(HexFormat.of().formatHex(bytes));
        }
    }
}
