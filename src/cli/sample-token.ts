/**
 * What the sample API is tried with: an application of its own that is subscribed to it, and a token for that. What an
 * earlier start has left of it in the database is used again.
 */
import type { ManagementRequest } from '../management/commands.ts'

const APPLICATION = 'Sample'
const API = 'Sample:1.0.0'

interface ShownApplication {
  readonly keys: readonly { readonly keyType: string }[]
  readonly subscriptions: readonly { readonly api: string }[]
}

/** `manage`: the authority's. Rejects with why there is none. */
export async function sampleToken(manage: (request: ManagementRequest) => Promise<object>): Promise<string> {
  const { applications } = (await manage({ action: 'application list' })) as {
    readonly applications: readonly { readonly name: string }[]
  }
  if (applications.every(({ name }) => name !== APPLICATION)) {
    await manage({ action: 'application create', name: APPLICATION, description: 'to try the sample API with' })
  }
  const of = { application: APPLICATION }
  const { keys, subscriptions } = (await manage({ action: 'application show', ...of })) as ShownApplication
  if (subscriptions.every(({ api }) => api !== API)) await manage({ action: 'subscription add', api: API, ...of })
  if (keys.every(({ keyType }) => keyType !== 'PRODUCTION')) {
    await manage({ action: 'key generate', grants: ['client_credentials'], ...of })
  }
  const { accessToken } = (await manage({ action: 'token', ...of })) as { readonly accessToken: string }
  return accessToken
}
