/**
 * APIs with a WebSocket backend (`ws://`, `wss://`) need the sender for it, `[transport.ws]` or `[transport.wss]`: off
 * by default as on the reference platform. Upgrades to http and https backends need neither.
 */
import { type ApiDefinition, endpointsOf } from './api-definition.ts'
import type { Configuration } from './catalogue.ts'
import type { Fault } from './fault.ts'

/** Why the API is not deployed; undefined where nothing is missing. */
export function missingSender(api: ApiDefinition, configuration: Configuration): Fault | undefined {
  const senders = [
    ['ws://', 'transport.ws', configuration['transport.ws']['sender.enable']],
    ['wss://', 'transport.wss', configuration['transport.wss']['sender.enable']],
  ] as const
  const urls = endpointsOf(api).map(({ url }) => url.toLowerCase())
  const missing = senders.find(([start, , isOn]) => !isOn && urls.some(url => url.startsWith(start)))
  if (missing === undefined) return undefined
  const [start, section] = missing
  const expected = `a ${start} backend needs the sender of [${section}], which is off`
  const remedy = `set ${section}.sender.enable = true`
  return { where: `API ${api.name} ${api.version}`, key: '', given: '', expected, remedy }
}
