/**
 * What a node starts, by `server.server_role` and `server.mode`. A role stands for a part or for several; a part that
 * does not exist yet is started by nobody, and a node whose role needs such a part says so.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Role } from '../config/key.ts'

type Part = 'gateway' | 'key manager' | 'traffic manager' | 'publisher portal' | 'developer portal'

const BUILT: readonly Part[] = ['gateway', 'key manager']

const CONTROL_PLANE: readonly Part[] = ['key manager', 'traffic manager', 'publisher portal', 'developer portal']

const PARTS: Readonly<Record<Role, readonly Part[]>> = {
  default: ['gateway', ...CONTROL_PLANE],
  'control-plane': CONTROL_PLANE,
  'gateway-worker': ['gateway'],
  'api-key-manager': ['key manager'],
  'traffic-manager': ['traffic manager'],
  'api-publisher': ['publisher portal'],
  'api-devportal': ['developer portal'],
}

const SHARING =
  'server.mode is ha, and sharing state between nodes is not built yet: but for what is in a database, this node ' +
  'keeps its state to itself'

export interface NodeParts {
  readonly role: Role
  /** The key and its value, for messages. */
  readonly because: string
  /** Listeners, APIs, reactors. */
  readonly runsGateway: boolean
  /** Its own key manager, with the database and the management listener. */
  readonly runsKeyManager: boolean
  /** What its role or mode asks for and does not exist, each a sentence: to be warned of. */
  readonly notBuilt: readonly string[]
  /** What the default role leaves out, because it takes what there is; '' for other roles. */
  readonly leftOut: string
}

export function partsOf(configuration: Pick<Configuration, 'server'>): NodeParts {
  const { server_role: role, mode } = configuration.server
  const parts = PARTS[role]
  const because = `server.server_role is ${role}`
  const runsGateway = parts.includes('gateway')
  const lacking = parts.filter(part => !BUILT.includes(part))
  const leftOut =
    role === 'default' ? `${because}, and of its parts these are not built yet: ${lacking.join(', ')}` : ''
  const absent = role === 'default' ? [] : lacking
  const said = absent.map(part => `${because}, and the ${part} is not built yet`)
  const notBuilt = mode === 'ha' ? [...said, SHARING] : said
  const runs = { runsGateway, runsKeyManager: parts.includes('key manager') }
  return { role, because, ...runs, notBuilt, leftOut }
}
