// Asks Apache Kafka's StandardAuthorizer: run by make.py, with Kafka's jars as class path.
// In: a line of JSON for each world of ACLs, with questions. Out: a line of JSON with the answers.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class Decisions {
    static final ObjectMapper JSON = new ObjectMapper();

    record Client(KafkaPrincipal principal, InetAddress clientAddress)
            implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "client"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answers(JSON.readTree(line)));
        }
    }

    static ObjectNode answers(JsonNode world) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of(
            "super.users", world.get("super_users").asText(),
            "allow.everyone.if.no.acl.found", world.get("allows_without_acl").asText()));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        List<Uuid> ids = new ArrayList<>();
        List<AclBinding> bindings = new ArrayList<>();
        for (JsonNode acl : world.get("acls")) {
            StandardAcl standard = new StandardAcl(
                ResourceType.fromCode((byte) acl.get(0).asInt()), acl.get(2).asText(),
                PatternType.fromCode((byte) acl.get(1).asInt()), acl.get(3).asText(),
                acl.get(4).asText(), AclOperation.fromCode((byte) acl.get(5).asInt()),
                AclPermissionType.fromCode((byte) acl.get(6).asInt()));
            ids.add(Uuid.randomUuid());
            bindings.add(standard.toBinding());
            authorizer.addAcl(ids.get(ids.size() - 1), standard);
        }
        ObjectNode answers = JSON.createObjectNode();
        ArrayNode filtered = answers.putArray("filtered");
        for (JsonNode filter : world.get("filters")) {
            ArrayNode places = filtered.addArray();
            for (AclBinding binding : authorizer.acls(filter(filter))) {
                places.add(bindings.indexOf(binding));
            }
        }
        answers.put("before", decisions(authorizer, world));
        for (JsonNode place : world.get("removed")) {
            authorizer.removeAcl(ids.get(place.asInt()));
        }
        answers.put("after", decisions(authorizer, world));
        return answers;
    }

    static String decisions(StandardAuthorizer authorizer, JsonNode world) throws Exception {
        StringBuilder found = new StringBuilder();
        for (JsonNode asked : world.get("questions")) {
            Client client = new Client(
                SecurityUtils.parseKafkaPrincipal(asked.get(0).asText()),
                InetAddress.getByName(asked.get(1).asText()));
            AclOperation operation = AclOperation.fromCode((byte) asked.get(2).asInt());
            ResourceType type = ResourceType.fromCode((byte) asked.get(3).asInt());
            AuthorizationResult result;
            if (asked.get(4).isNull()) {
                result = authorizer.authorizeByResourceType(client, operation, type);
            } else {
                ResourcePattern resource =
                    new ResourcePattern(type, asked.get(4).asText(), PatternType.LITERAL);
                Action action = new Action(operation, resource, 1, true, true);
                result = authorizer.authorize(client, List.of(action)).get(0);
            }
            found.append(result == AuthorizationResult.ALLOWED ? '1' : '0');
        }
        return found.toString();
    }

    static AclBindingFilter filter(JsonNode filter) {
        return new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromCode((byte) filter.get(0).asInt()), text(filter.get(2)),
                PatternType.fromCode((byte) filter.get(1).asInt())),
            new AccessControlEntryFilter(
                text(filter.get(3)), text(filter.get(4)),
                AclOperation.fromCode((byte) filter.get(5).asInt()),
                AclPermissionType.fromCode((byte) filter.get(6).asInt())));
    }

    static String text(JsonNode value) {
        return value.isNull() ? null : value.asText();
    }
}
