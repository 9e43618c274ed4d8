/**
 * The components that a node starts, by `server.server_role`. A component that is not built yet is never started; a
 * node whose role needs such a component warns of it.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Role } from '../config/key.ts'

type Component = 'gateway' | 'key manager' | 'traffic manager' | 'publisher portal' | 'developer portal'

const BUILT: readonly Component[] = ['gateway', 'key manager', 'traffic manager']

const CONTROL_PLANE: readonly Component[] = ['key manager', 'traffic manager', 'publisher portal', 'developer portal']

const COMPONENTS: Readonly<Record<Role, readonly Component[]>> = {
  default: ['gateway', ...CONTROL_PLANE],
  'control-plane': CONTROL_PLANE,
  'gateway-worker': ['gateway'],
  'api-key-manager': ['key manager'],
  'traffic-manager': ['traffic manager'],
  'api-publisher': ['publisher portal'],
  'api-devportal': ['developer portal'],
}

export interface NodeComponents {
  readonly role: Role
  /** The key and its value, for messages. */
  readonly roleSetting: string
  /** Listeners, APIs, reactors. */
  readonly runsGateway: boolean
  /** The built-in key manager, with database and management listener. */
  readonly runsKeyManager: boolean
  /** Counts for all gateways, where it has an address to receive reports at. */
  readonly runsTrafficManager: boolean
  /** Parts that the role asks for and that are not built yet. */
  readonly missing: readonly string[]
  /** Sentences that name parts of the role that this node lacks. */
  readonly warnings: readonly string[]
  /** A sentence that names what the default role leaves out; '' for other roles. */
  readonly notice: string
}

export function nodeComponents(configuration: Pick<Configuration, 'server'>): NodeComponents {
  const role = configuration.server.server_role
  const components = COMPONENTS[role]
  const roleSetting = `server.server_role is ${role}`
  const missing = components.filter(component => !BUILT.includes(component))
  // The default role means whatever is built, so its missing components are no reason to warn.
  const isDefault = role === 'default'
  const warnings = isDefault ? [] : missing.map(component => `${roleSetting}, and the ${component} is not built yet`)
  return {
    role,
    roleSetting,
    runsGateway: components.includes('gateway'),
    runsKeyManager: components.includes('key manager'),
    runsTrafficManager: components.includes('traffic manager'),
    missing,
    warnings,
    notice: isDefault ? `${roleSetting}; these components are not built yet: ${missing.join(', ')}` : '',
  }
}
