/** The WebSocket listeners, plain and on TLS, and the senders: sequences of handshakes, never of messages. */
import { inert, live, type Rule, sameAs, section, type Values } from '../key.ts'
import { flag, port, scalar, secret, text } from '../kinds.ts'
import { bindAddress, listenerEnable } from './passthru-keys.ts'

const CUSTOM = 'not built: nothing reads a parameter with a name of your own'

const senderKeys = {
  'sender.enable': live(flag(false, 'Send to backends of this kind; an API with one is not deployed otherwise.')),
  'sender.parameters.ws.outflow.dispatch.sequence': live(
    text(
      'outflowDispatchSeq',
      'Sequence of the 101 with which a backend of this kind agrees to a WebSocket, in place of `outDispatchSeq`. ' +
        'The default needs no file: without one it is `outDispatchSeq`. Messages behind the 101 go through none.',
    ),
  ),
  'sender.parameters.ws.outflow.dispatch.fault.sequence': live(
    text(
      'outflowFaultSeq',
      'Sequence that words the fault where that one refuses the 101, or fails. The default needs no file: without ' +
        'one the fault is worded as any other of its code.',
    ),
  ),
  'sender.parameter.<name>': inert(scalar('A parameter with a name of your own.'), CUSTOM),
} as const

const trustStore = {
  'sender.trust_store.location': live(
    sameAs('truststore.file_name', text('', 'Store of the authorities that sign the certificates of backends.')),
  ),
  'sender.trust_store.password': live(sameAs('truststore.password', secret('Password of that store.'))),
}

type Secured = Values<typeof senderKeys & typeof trustStore>

function needs(key: keyof typeof trustStore): Rule<Secured> {
  return {
    keys: [key, 'sender.enable'],
    must: `${key} is required where sender.enable is true`,
    severity: 'fault',
    holds: it => !it['sender.enable'] || it[key] !== '',
  }
}

export const ws = section(
  'transport.ws',
  'WebSocket on a port of its own, plain.',
  {
    ...senderKeys,
    ...listenerEnable,
    'listener.parameters.port': port(9099, 'Listening port; `server.offset` is added.'),
    ...bindAddress,
  },
  {
    roles: ['gateway-worker'],
    readBy: ['config/websocket-senders.ts', 'primary/listener-plans.ts', 'primary/socket-sequences.ts'],
  },
)

export const wss = section(
  'transport.wss',
  'WebSocket on a port of its own, on TLS: stores, versions and suites are those of `[transport.passthru_https]`.',
  {
    ...senderKeys,
    ...trustStore,
    ...listenerEnable,
    'listener.parameters.port': port(8099, 'Listening port; `server.offset` is added.'),
    ...bindAddress,
  },
  {
    roles: ['gateway-worker'],
    readBy: [
      'config/websocket-senders.ts',
      'primary/listener-plans.ts',
      'primary/preparation.ts',
      'primary/socket-sequences.ts',
    ],
    rules: [needs('sender.trust_store.location'), needs('sender.trust_store.password')],
  },
)
