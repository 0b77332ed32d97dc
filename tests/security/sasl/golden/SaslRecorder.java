// Feeds messages to the SASL servers of Apache Kafka and prints what they answer: run by make.py.
// In: one JSON object per line, {"mechanism": ..., "messages": [...]}, with each message as a text of
// code points 0 to 255, one for each byte; {nonce} and {proof} stand for what a client computes.
// Out: the same object with the messages as sent, their answers, and the principal.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramMessages;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCredentialCallback;

public class SaslRecorder {
    static final Map<String, String> USERS =
        Map.of("alice", "alice-secret", "a,b=c", "x=,y", "ä", "ü", "bob", "bób");
    static final byte[] SALT = "0123456789abcdefghijklmnop".getBytes(StandardCharsets.US_ASCII);

    public static void main(String[] args) throws Exception {
        ObjectMapper json =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode exchange = (ObjectNode) json.readTree(line);
            run(exchange);
            System.out.println(json.writeValueAsString(exchange));
        }
    }

    static void run(ObjectNode exchange) throws Exception {
        String mechanism = exchange.get("mechanism").asText();
        SaslServer server = server(mechanism);
        ArrayNode sent = exchange.arrayNode();
        ArrayNode answers = exchange.putArray("answers");
        byte[] first = null, challenge = null;
        for (JsonNode message : exchange.get("messages")) {
            String text = message.asText();
            if (challenge != null && text.contains("{")) text = filled(mechanism, text, first, challenge);
            sent.add(text);
            byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
            if (first == null) first = bytes;
            try {
                challenge = server.evaluateResponse(bytes);
                answers.add(new String(challenge, StandardCharsets.ISO_8859_1));
            } catch (Exception failure) {
                ObjectNode answer = answers.addObject();
                answer.put("failed", failure.getClass().getSimpleName());
                answer.put("message", failure.getMessage());
                break;
            }
        }
        exchange.set("messages", sent);
        if (mechanism.startsWith("SCRAM")) exchange.put("credential", ScramCredentialUtils.credentialToString(
            credential(mechanism, USERS.get("alice"))));
        exchange.put("principal", server.isComplete() ? server.getAuthorizationID() : null);
    }

    static SaslServer server(String mechanism) throws Exception {
        if (mechanism.equals("PLAIN")) return new PlainSaslServer(new Users(mechanism));
        if (mechanism.equals("OAUTHBEARER")) return new OAuthBearerSaslServer(new Users(mechanism));
        return new ScramSaslServer(ScramMechanism.forMechanismName(mechanism), Map.of(), new Users(mechanism));
    }

    static ScramCredential credential(String mechanism, String password) throws Exception {
        ScramFormatter formatter = new ScramFormatter(ScramMechanism.forMechanismName(mechanism));
        return formatter.generateCredential(SALT, formatter.saltedPassword(password, SALT, 4096), 4096);
    }

    // {nonce}: of the server; {proof}: by the password of alice.
    static String filled(String mechanism, String text, byte[] first, byte[] challenge) throws Exception {
        ScramFormatter formatter = new ScramFormatter(ScramMechanism.forMechanismName(mechanism));
        ScramMessages.ClientFirstMessage clientFirst = new ScramMessages.ClientFirstMessage(first);
        ScramMessages.ServerFirstMessage serverFirst = new ScramMessages.ServerFirstMessage(challenge);
        ScramMessages.ClientFinalMessage clientFinal = new ScramMessages.ClientFinalMessage(
            "n,,".getBytes(StandardCharsets.US_ASCII), serverFirst.nonce());
        String user = ScramFormatter.username(clientFirst.saslName());
        byte[] salted = formatter.saltedPassword(USERS.getOrDefault(user, "?"), SALT, 4096);
        byte[] proof = formatter.clientProof(salted, clientFirst, serverFirst, clientFinal);
        return text.replace("{nonce}", serverFirst.nonce())
            .replace("{proof}", java.util.Base64.getEncoder().encodeToString(proof));
    }

    record Users(String mechanism) implements AuthenticateCallbackHandler {
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}

        public void close() {}

        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            String user = null;
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback name) user = name.getDefaultName();
                else if (callback instanceof PlainAuthenticateCallback plain)
                    plain.authenticated(new String(plain.password()).equals(USERS.get(user)));
                else if (callback instanceof DelegationTokenCredentialCallback) {}
                else if (callback instanceof ScramCredentialCallback scram) {
                    try {
                        if (USERS.containsKey(user)) scram.scramCredential(credential(mechanism, USERS.get(user)));
                    } catch (Exception failure) {
                        throw new RuntimeException(failure);
                    }
                } else if (callback instanceof OAuthBearerValidatorCallback oauth) {
                    if (oauth.tokenValue().equals("good")) oauth.token(new Token());
                    else oauth.error("invalid_token", null, null);
                } else if (callback instanceof OAuthBearerExtensionsValidatorCallback extensions)
                    extensions.inputExtensions().map().forEach((name, v) -> extensions.valid(name));
                else throw new UnsupportedCallbackException(callback);
            }
        }
    }

    record Token() implements OAuthBearerToken {
        public String value() { return "good"; }

        public Set<String> scope() { return Set.of(); }

        public long lifetimeMs() { return 12345L; }

        public String principalName() { return "alice"; }

        public Long startTimeMs() { return null; }
    }
}
