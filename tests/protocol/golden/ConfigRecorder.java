// Reads configuration values with Apache Kafka's own classes: run by make_config_values.py.
// In: a line for each value, ["type" | "broker" | "topic", NAME, VALUE]. Out: the same as an object,
// with what it was read as, or why not.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigRecorder {
    private static final Map<String, String> BROKER =
        Map.of("node.id", "1", "process.roles", "broker", "controller.listener.names", "CONTROLLER");

    public static void main(String[] args) throws Exception {
        ObjectMapper json =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] asked = json.readValue(line, String[].class);
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("kind", asked[0]);
            answer.put("name", asked[1]);
            answer.put("value", asked[2]);
            try {
                answer.put("parsed", read(asked[0], asked[1], asked[2]));
            } catch (ConfigException refused) {
                answer.put("refused", refused.getMessage());
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }

    private static Object read(String kind, String name, String value) {
        if (kind.equals("type")) {
            ConfigDef.Type type = ConfigDef.Type.valueOf(name);
            return ConfigDef.convertToString(ConfigDef.parseType("key", value, type), type);
        }
        ConfigDef keys = kind.equals("topic") ? LogConfig.configDefCopy() : AbstractKafkaConfig.CONFIG_DEF;
        Map<String, String> written = new HashMap<>(kind.equals("topic") ? Map.of() : BROKER);
        written.put(name, value);
        ConfigDef.Type type = keys.configKeys().get(name).type;
        return ConfigDef.convertToString(keys.parse(written).get(name), type);
    }
}
