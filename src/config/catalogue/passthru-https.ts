/** The pass-through transport on TLS: what it does with TLS, and where it reaches backends through a proxy. */
import { allInert, section } from '../key.ts'
import { port } from '../kinds.ts'
import {
  bindAddress,
  listenerEnable,
  listenerTls,
  PROXY_RULES,
  STORE_RULES,
  sender,
  senderTls,
  shared,
  wsdlPrefix,
} from './passthru-keys.ts'

const SHARED = 'the value of [transport.passthru_http] holds for both transports, as on the reference platform'

export const passthruHttps = section(
  'transport.passthru_https',
  'The non-blocking pass-through transport on TLS. What no key of it says is as in `[transport.passthru_http]`.',
  {
    ...allInert(shared, SHARED),
    'listener.parameters.port': port(8253, 'Listening port; `server.offset` is added.'),
    ...wsdlPrefix,
    ...listenerTls,
    ...senderTls,
    ...sender,
    ...listenerEnable,
    ...bindAddress,
  },
  {
    rules: [...PROXY_RULES, ...STORE_RULES],
    // A key manager listens with its key store, and asks others with its trust store.
    roles: ['api-key-manager', 'gateway-worker'],
    readBy: ['primary/forward-proxies.ts', 'primary/listener-plans.ts', 'primary/planning.ts', 'tls/settings.ts'],
  },
)
