/** Gateway environments: under which addresses gateways are reached, and which APIs a gateway takes. */
import { allInert, inert, live, repeatedSection, required, sameAs, section } from '../key.ts'
import { choice, flag, secret, text, url, words } from '../kinds.ts'

const PORTAL = 'there is no developer portal that would show it'
const PUSHED = 'APIs are read from files and not pushed to the gateway by a publisher'

const PLAIN = ['http', 'https'] as const
const TLS = ['https'] as const
const ROLES_OF_ADDRESSES = ['api-devportal', 'api-publisher', 'gateway-worker'] as const

export const environment = repeatedSection(
  'apim.gateway.environment',
  'A gateway, or several behind one address, that APIs are published to.',
  {
    name: live(text('Default', 'Name of the environment, which is a label of APIs; no two have the same.')),
    type: live(
      choice('hybrid', ['production', 'sandbox', 'hybrid'], 'Which keys its APIs take: production, sandbox or both.'),
    ),
    display_in_api_console: inert(flag(true, "Show the environment under 'Try it' in the developer portal."), PORTAL),
    description: inert(
      text('A hybrid gateway that takes production and sandbox keys.', 'What the portals say of the environment.'),
      PORTAL,
    ),
    show_as_token_endpoint_url: inert(flag(true, 'Make the sample request for a token of its address.'), PORTAL),
    ...allInert(
      {
        service_url: url('https://localhost:9443/services/', PLAIN, 'Where APIs are published to.'),
        username: sameAs('super_admin.username', text('', 'Account that APIs are published with.')),
        password: sameAs('super_admin.password', secret('Password that goes with `username`.')),
      },
      PUSHED,
    ),
    ws_endpoint: live(
      required(url('', ['ws', 'wss'], 'WebSocket address of the environment, such as `ws://host:9099`.')),
    ),
    https_endpoint: live(
      required(url('', TLS, 'Address of the environment on TLS, such as `https://host:8253`. APIs may have its host.')),
    ),
    http_endpoint: live(
      url('', ['http'], 'Plain address of the environment, such as `http://host:8290`; empty: none.'),
    ),
  },
  { roles: ROLES_OF_ADDRESSES, readBy: ['primary/api-loading.ts'] },
)

export const virtualHost = repeatedSection(
  'apim.gateway.environment.virtual_host',
  'A host name under which APIs of the environment above it are reached: those alone that are deployed to it. Of its ' +
    'addresses the gateway compares host names; ports and a path are those of whoever stands in front of it.',
  {
    https_endpoint: live(
      required(url('', TLS, 'Address on TLS, `https://host:port/context`; the context may be left out.')),
    ),
    http_endpoint: live(url('', ['http'], 'Plain address; empty: port 80 of the host in `https_endpoint`.')),
    ws_endpoint: live(url('', ['ws'], 'WebSocket address; empty: port 9099 of the host in `https_endpoint`.')),
    wss_endpoint: live(url('', ['wss'], 'WebSocket address on TLS; empty: port 8099 of the host in `https_endpoint`.')),
  },
  {
    roles: ROLES_OF_ADDRESSES,
    readBy: ['primary/api-loading.ts'],
    otherForm: 'table',
    rules: [
      {
        keys: ['https_endpoint'],
        must: 'a path in it is no part of the paths of APIs: whoever stands in front of the gateway has to take it off',
        severity: 'warning',
        holds: it => (URL.parse(it.https_endpoint)?.pathname ?? '/') === '/',
      },
    ],
  },
)

export const gatewayLabels = section(
  'apim.sync_runtime_artifacts.gateway',
  'Which APIs this gateway takes.',
  {
    gateway_labels: live(
      words(['Default'], 'Labels of the APIs that are deployed, and names of environments; an API without labels is.'),
    ),
  },
  { roles: ['gateway-worker'], readBy: ['primary/api-loading.ts'] },
)
