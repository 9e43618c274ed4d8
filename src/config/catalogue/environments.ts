/** Gateway environments: public addresses of gateways, and the selection of APIs for a gateway. */
import { isTrue } from '../conditions.ts'
import { allActIf, allInert, live, repeatedSection, required, sameAs, section } from '../key.ts'
import { choice, flag, secret, text, url, list } from '../kinds.ts'

const PUSHED = 'APIs are read from files; no publisher pushes them to the gateway'

const PLAIN = ['http', 'https'] as const
const TLS = ['https'] as const
const ROLES_OF_ADDRESSES = ['api-devportal', 'api-key-manager', 'api-publisher', 'gateway-worker'] as const

export const environment = repeatedSection(
  'apim.gateway.environment',
  'An environment: one gateway, or several behind one address.',
  {
    name: live(text('Default', 'Unique name of the environment, which APIs use as a label.')),
    type: live(
      choice(
        'hybrid',
        ['production', 'sandbox', 'hybrid'],
        'Key types that its APIs accept: production, sandbox or both.',
      ),
    ),
    ...allActIf(
      isTrue('management.enable'),
      {
        display_in_api_console: live(
          flag(true, 'Show the URLs of APIs in this environment, in the REST API of the developer portal.'),
        ),
        description: live(
          text(
            'A hybrid gateway that takes production and sandbox keys.',
            'Description of the environment in the REST API of administrators.',
          ),
        ),
        show_as_token_endpoint_url: live(
          flag(
            true,
            'Show `/token` below `https_endpoint` as the token endpoint in the REST API of the developer portal; of ' +
              'several environments, the first.',
          ),
        ),
      },
      'the REST APIs are on the management listener',
    ),
    ...allInert(
      {
        service_url: url('https://localhost:9443/services/', PLAIN, 'Address to which APIs are published.'),
        username: sameAs('super_admin.username', text('', 'Account for publishing APIs.')),
        password: sameAs('super_admin.password', secret('Password of `username`.')),
      },
      PUSHED,
    ),
    ws_endpoint: live(
      required(url('', ['ws', 'wss'], 'WebSocket address of the environment, such as `ws://host:9099`.')),
    ),
    https_endpoint: live(
      required(
        url('', TLS, 'HTTPS address of the environment, such as `https://host:8253`; APIs may be bound to its host.'),
      ),
    ),
    http_endpoint: live(url('', ['http'], 'HTTP address of the environment, such as `http://host:8290`; empty: none.')),
  },
  { roles: ROLES_OF_ADDRESSES },
)

export const virtualHost = repeatedSection(
  'apim.gateway.environment.virtual_host',
  'A virtual host of the environment above it, which serves only the APIs that are deployed to it. The gateway ' +
    'compares only host names; ports and path belong to the load balancer in front of it, and the portals show them.',
  {
    https_endpoint: live(
      required(url('', TLS, 'HTTPS address, `https://host:port/context`; the context is optional.')),
    ),
    http_endpoint: live(url('', ['http'], 'HTTP address; empty: port 80 of the host in `https_endpoint`.')),
    ws_endpoint: live(url('', ['ws'], 'WebSocket address; empty: port 9099 of the host in `https_endpoint`.')),
    wss_endpoint: live(url('', ['wss'], 'WebSocket address on TLS; empty: port 8099 of the host in `https_endpoint`.')),
  },
  {
    roles: ROLES_OF_ADDRESSES,
    alternativeForm: 'table',
    rules: [
      {
        keys: ['https_endpoint'],
        must: 'a path in https_endpoint is not part of API paths: the load balancer in front must strip it',
        severity: 'warning',
        holds: it => (URL.parse(it.https_endpoint)?.pathname ?? '/') === '/',
      },
    ],
  },
)

export const gatewayLabels = section(
  'apim.sync_runtime_artifacts.gateway',
  'Selection of the APIs that this gateway deploys.',
  {
    gateway_labels: live(
      list(['Default'], 'Labels and environment names whose APIs are deployed; an API without labels always is.'),
    ),
  },
  { roles: ['gateway-worker'] },
)
