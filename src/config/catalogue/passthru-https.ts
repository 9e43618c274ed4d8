/** The pass-through transport on TLS: the documented keys, so that documented files load. Nothing acts on them yet. */
import { inert, type Key, port, section } from '../key.ts'
import { documented } from './passthru-http.ts'

const TLS = 'not built yet: the secured transport'

function allInert<K extends Readonly<Record<string, Key<unknown>>>>(keys: K): K {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, inert(key, TLS)])) as unknown as K
}

export const passthruHttps = section(
  'transport.passthru_https',
  'The non-blocking pass-through transport on TLS. Accepted, and not acted on yet: nothing listens on its port.',
  allInert({ ...documented, 'listener.parameters.port': port(8253, 'Listening port; `server.offset` is added.') }),
)
