/** Gateway environments: under which addresses gateways are reached, and which APIs a gateway takes. */
import { allInert, inert, repeatedSection, required, sameAs, section } from '../key.ts'
import { choice, flag, secret, text, url, words } from '../kinds.ts'

const ADDRESSES = 'not built yet: environments and virtual hosts come with API definitions'
const PORTAL = 'there is no developer portal that would show it'
const PUSHED = 'APIs are read from files and not pushed to the gateway by a publisher'

const PLAIN = ['http', 'https'] as const
const TLS = ['https'] as const
const VIRTUAL_HOST = ['http_endpoint', 'ws_endpoint', 'wss_endpoint'] as const

export const environment = repeatedSection(
  'apim.gateway.environment',
  'A gateway, or several behind one address, that APIs are published to.',
  {
    name: inert(text('Default', 'Name of the environment; no two have the same.'), ADDRESSES),
    type: inert(
      choice('hybrid', ['production', 'sandbox', 'hybrid'], 'Which keys its APIs take: production, sandbox or both.'),
      ADDRESSES,
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
    ...allInert(
      {
        ws_endpoint: required(
          url('', ['ws', 'wss'], 'WebSocket address of the environment, such as `ws://host:9099`.'),
        ),
        https_endpoint: required(url('', TLS, 'Address of the environment on TLS, such as `https://host:8253`.')),
        http_endpoint: url('', ['http'], 'Plain address of the environment, such as `http://host:8290`; empty: none.'),
        'virtual_host.http_endpoint': url(
          '',
          ['http'],
          'Plain address of the virtual host; empty: port 80 of the host in its `https_endpoint`.',
        ),
        'virtual_host.https_endpoint': url(
          '',
          TLS,
          'Address of a virtual host on TLS, `https://host:port/context`; the context may be left out.',
        ),
        'virtual_host.ws_endpoint': url(
          '',
          ['ws'],
          'WebSocket address of the virtual host; empty: port 9099 of the host in its `https_endpoint`.',
        ),
        'virtual_host.wss_endpoint': url(
          '',
          ['wss'],
          'WebSocket address on TLS of the virtual host; empty: port 8099 of the host in its `https_endpoint`.',
        ),
      },
      ADDRESSES,
    ),
  },
  {
    roles: ['api-devportal', 'api-publisher', 'gateway-worker'],
    rules: [
      {
        keys: ['virtual_host.https_endpoint', ...VIRTUAL_HOST.map(name => `virtual_host.${name}` as const)],
        must: 'virtual_host.https_endpoint is required where the row has a virtual host: the other addresses go by it',
        severity: 'fault',
        holds: it =>
          it['virtual_host.https_endpoint'] !== '' || VIRTUAL_HOST.every(name => it[`virtual_host.${name}`] === ''),
      },
    ],
  },
)

export const gatewayLabels = section(
  'apim.sync_runtime_artifacts.gateway',
  'Which APIs this gateway takes.',
  {
    gateway_labels: inert(
      words(['Default'], 'Labels of the APIs that are deployed; an API with none of them is left out.'),
      'not built yet: labels come with API definitions',
    ),
  },
  { roles: ['gateway-worker'] },
)
