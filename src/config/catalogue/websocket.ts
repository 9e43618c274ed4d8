/** The WebSocket listeners, plain and on TLS, and the senders. Sequences mediate handshakes, never messages. */
import { isTrue } from '../conditions.ts'
import { actsIf, allActIf, inert, live, type Rule, sameAs, section, type Values } from '../key.ts'
import { flag, scalar, secret, text } from '../kinds.ts'
import { bindAddress, listenerEnable, listenerPort, PROXY_PROTOCOL_RULE, proxyProtocol } from './passthru-keys.ts'

const CUSTOM = 'there are no custom sender parameters'

const SENDER = isTrue('.sender.enable')

const senderKeys = {
  'sender.enable': live(
    flag(
      false,
      'Connect to WebSocket backends of this scheme; while false, an API with such a backend is not deployed.',
    ),
  ),
  'sender.parameters.ws.outflow.dispatch.sequence': actsIf(
    SENDER,
    live(
      text(
        'outflowDispatchSeq',
        'Sequence for the 101 response of a WebSocket backend, in place of `outDispatchSeq`. Without a file of the ' +
          'default name, `outDispatchSeq` runs. Messages after the 101 go through no sequence.',
      ),
    ),
  ),
  'sender.parameters.ws.outflow.dispatch.fault.sequence': actsIf(
    SENDER,
    live(
      text(
        'outflowFaultSeq',
        'Fault sequence for a 101 response that the dispatch sequence refuses or fails on. Without a file of the ' +
          'default name, the fault sequence of the code runs.',
      ),
    ),
  ),
  'sender.parameter.<name>': inert(scalar('A custom parameter.'), CUSTOM),
} as const

const trustStore = allActIf(SENDER, {
  'sender.trust_store.location': live(
    sameAs('truststore.file_name', text('', 'Store with the CAs of backend certificates.')),
  ),
  'sender.trust_store.password': live(sameAs('truststore.password', secret('Password of the store.'))),
})

type Secured = Values<typeof senderKeys & typeof trustStore>

function needs(key: keyof typeof trustStore): Rule<Secured> {
  return {
    keys: [key, 'sender.enable'],
    must: `${key} is required where sender.enable is true`,
    severity: 'error',
    holds: it => !it['sender.enable'] || it[key] !== '',
  }
}

export const ws = section(
  'transport.ws',
  'Plain WebSocket: a listener with its own port, and the sender. Its connections have the settings of ' +
    '`[transport.passthru_http]`.',
  {
    ...senderKeys,
    ...listenerEnable,
    ...listenerPort(9099),
    ...bindAddress,
    ...proxyProtocol('transport.passthru_http'),
  },
  {
    roles: ['gateway-worker'],
    rules: [PROXY_PROTOCOL_RULE],
  },
)

export const wss = section(
  'transport.wss',
  'WebSocket on TLS: a listener with its own port, and the sender. Key stores, TLS versions and cipher suites of the ' +
    'listener, and settings of connections, are those of `[transport.passthru_https]`.',
  {
    ...senderKeys,
    ...trustStore,
    ...listenerEnable,
    ...listenerPort(8099),
    ...bindAddress,
    ...proxyProtocol('transport.passthru_http'),
  },
  {
    roles: ['gateway-worker'],
    rules: [needs('sender.trust_store.location'), needs('sender.trust_store.password'), PROXY_PROTOCOL_RULE],
  },
)
