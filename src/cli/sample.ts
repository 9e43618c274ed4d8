/**
 * The parts that `start --sample` adds to a gateway: a sample backend, which listens at the production endpoint of the
 * API named Sample, and an application with a token for that API.
 */
import { join } from 'node:path'
import type { ApiDefinition } from '../apis/api-definition.ts'
import { apiPaths } from '../apis/api-paths.ts'
import type { LoadedApis } from '../apis/api-projects.ts'
import { labelOf } from '../config/source-file.ts'
import type { ManagementCommand } from '../control/admin-api/commands.ts'
import type { ListenAddress } from './sample-backend.ts'

const API = 'Sample'
const APPLICATION = 'Sample'
/** The API of healthcare services, where the home has it. */
const HEALTHCARE_MODULE = 'sluice:healthcare'
const HEALTHCARE_SCOPE = 'system/HealthcareService.cruds'

/** `--sample` is refused, or its backend cannot listen; the message names the file to edit. */
export class SampleError extends Error {
  override readonly name = 'SampleError'
}

export interface RunningSample {
  /** URL of the backend. */
  readonly backend: string
  /** Path of a request that the backend echoes. */
  readonly echoPath: string
  /** `Sample:1.0.0`. */
  readonly api: string
  /** Null where the home has no API of healthcare services. */
  readonly healthcare: SampleHealthcare | null
  close(): Promise<void>
}

interface SampleHealthcare {
  readonly api: string
  /** Path and query of a search. */
  readonly searchPath: string
}

/** Starts the backend in its own thread. `isShared`: beside that of another process. Rejects with SampleError. */
export async function startSample({ projects }: LoadedApis, home: string, isShared = false): Promise<RunningSample> {
  const apisFolder = join(home, 'apis')
  const [name, project] = [...projects].find(([, { api }]) => api.name === API) ?? []
  if (name === undefined || project === undefined) {
    const file = labelOf(join(apisFolder, API, 'api.yaml'))
    throw new SampleError(
      `--sample needs the API ${API}, and the home has none: add ${file}, or start without --sample`,
    )
  }
  const file = labelOf(/\.(?:ya?ml|json)$/i.test(name) ? join(apisFolder, name) : join(apisFolder, name, 'api.yaml'))
  const address = listenAddress(project.api, file)
  const { startSampleThread } = await import('./sample-backend.ts')
  const thread = await startSampleThread({ ...address, isShared }).catch((error: Error) => {
    const hint = `stop the program that uses the port, or change the port of the endpoint in ${file}`
    throw new SampleError(`${error.message}: ${hint}`)
  })
  const { context, version, isDefaultVersion, isUnversioned } = project.api
  return {
    backend: `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`,
    echoPath: `${apiPaths(context, version, isDefaultVersion, isUnversioned)[0]}/echo`,
    api: `${API}:${version}`,
    healthcare: healthcareOf(projects),
    close: () => thread.close(),
  }
}

function healthcareOf(projects: LoadedApis['projects']): SampleHealthcare | null {
  const api = [...projects.values()].find(({ api }) => api.mounted?.module === HEALTHCARE_MODULE)?.api
  if (api === undefined) return null
  const { name, context, version, isDefaultVersion, isUnversioned } = api
  const [path] = apiPaths(context, version, isDefaultVersion, isUnversioned)
  return { api: `${name}:${version}`, searchPath: `${path}/HealthcareService?name=community&_count=2` }
}

/** Throws SampleError if the first production endpoint is not an http URL of the loopback interface. */
function listenAddress({ endpoints }: ApiDefinition, file: string): ListenAddress {
  const url = URL.parse(endpoints.endpoints[0]?.url ?? '')
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? ''
  if (url?.protocol === 'http:' && (host === 'localhost' || host === '::1' || /^127(?:\.\d+){3}$/.test(host))) {
    return { host, port: url.port === '' ? 80 : Number(url.port) }
  }
  const found = url === null ? 'there is none' : `it is ${url.protocol}//${url.host}`
  const expected = `the production endpoint of the API ${API} must be an http URL of the loopback interface`
  throw new SampleError(
    `--sample is refused: ${expected}, because the sample backend listens there, and ${found}: ` +
      `edit ${file}, or start without --sample`,
  )
}

interface ShownApplication {
  readonly keys: readonly { readonly keyType: string }[]
  readonly subscriptions: readonly { readonly api: string }[]
}

/**
 * Returns an access token for the APIs of the sample. Creates the application, its subscriptions and its keys unless an
 * earlier start has created them. `manage`: runs a command of the control thread. Rejects if one fails.
 */
export async function sampleToken(
  { api, healthcare }: Pick<RunningSample, 'api' | 'healthcare'>,
  manage: (request: ManagementCommand) => Promise<object>,
): Promise<string> {
  const { applications } = (await manage({ action: 'application list' })) as {
    readonly applications: readonly { readonly name: string }[]
  }
  if (applications.every(({ name }) => name !== APPLICATION)) {
    await manage({ action: 'application create', name: APPLICATION, description: 'to try the sample API with' })
  }
  const application = { application: APPLICATION }
  const { keys, subscriptions } = (await manage({ action: 'application show', ...application })) as ShownApplication
  for (const wanted of healthcare === null ? [api] : [api, healthcare.api]) {
    if (subscriptions.some(subscription => subscription.api === wanted)) continue
    await manage({ action: 'subscription add', api: wanted, ...application })
  }
  if (keys.every(({ keyType }) => keyType !== 'PRODUCTION')) {
    await manage({ action: 'key generate', grants: ['client_credentials'], ...application })
  }
  const scopes = healthcare === null ? {} : { scopes: [HEALTHCARE_SCOPE] }
  const { accessToken } = (await manage({ action: 'token', ...application, ...scopes })) as {
    readonly accessToken: string
  }
  return accessToken
}
