/**
 * APIs with a WebSocket backend (`ws://`, `wss://`) need the sender for it, `[transport.ws]` or `[transport.wss]`: off
 * by default as on the reference platform. Upgrades to http and https backends need neither.
 */
import type { ApiDefinition } from './api-definitions.ts'
import type { Configuration } from './catalogue.ts'
import type { Fault } from './fault.ts'

interface Sendable {
  readonly apis: readonly ApiDefinition[]
  /** One for each API that is left out. */
  readonly faults: readonly Fault[]
}

export function sendable(apis: readonly ApiDefinition[], configuration: Configuration): Sendable {
  const senders = [
    ['ws://', 'transport.ws', configuration['transport.ws']['sender.enable']],
    ['wss://', 'transport.wss', configuration['transport.wss']['sender.enable']],
  ] as const
  const off = senders.filter(([, , isOn]) => !isOn)
  const faults: Fault[] = []
  const able = apis.filter(({ name, version, endpoints }) => {
    const missing = off.find(([start]) => endpoints.endpoints.some(({ url }) => url.startsWith(start)))
    if (missing === undefined) return true
    const [start, section] = missing
    const expected = `a ${start} backend needs the sender of [${section}], which is off`
    const remedy = `set ${section}.sender.enable = true`
    faults.push({ where: `API ${name} ${version}`, key: '', given: '', expected, remedy })
    return false
  })
  return { apis: able, faults }
}
