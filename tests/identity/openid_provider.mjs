// A certified OpenID provider (oidc-provider, whose module is argv[2]) for MCP endpoints on this computer.
//
// It listens on the socket with the file descriptor argv[4], whose port is in its issuer, argv[3]. Any password
// signs in. Clients may register themselves; "app" and "reader" are registered, and "reader" may only read.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

const [provider, issuer, descriptor] = process.argv.slice(2);
const { default: Provider, errors } = await import(provider);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const signingKey = { ...privateKey.export({ format: "jwk" }), kid: "signing", use: "sig", alg: "RS256" };

const ENDPOINT = /^http:\/\/127\.0\.0\.1:\d+\/mcp$/;
const OTHER = "https://other.example/mcp";

const resourceServer = (audience, { clientId }) => ({
  scope: clientId === "reader" ? "db:read" : "billing db:read db:write",
  audience,
  accessTokenTTL: 300,
  accessTokenFormat: "jwt",
  jwt: { sign: { alg: "RS256" } },
});

const configuration = {
  jwks: { keys: [signingKey] },
  scopes: ["openid", "offline_access", "billing", "db:read", "db:write"],
  clients: [
    ...["app", "reader"].map((client_id) => ({
      client_id,
      redirect_uris: ["http://127.0.0.1:1/callback"],
      token_endpoint_auth_method: "none",
    })),
    {
      client_id: "machine",
      client_secret: "a secret of the tests",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, asked, client) => {
        if (asked !== OTHER && !ENDPOINT.test(asked)) throw new errors.InvalidTarget();
        return resourceServer(asked, client);
      },
    },
  },
};

createServer(new Provider(issuer, configuration).callback()).listen({ fd: Number(descriptor) });
