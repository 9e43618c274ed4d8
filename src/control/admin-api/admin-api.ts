/** Builds the REST apps of the admin API. */
import { ADMIN, adminApp } from './administration.ts'
import { AdminAuthenticator } from './authentication.ts'
import { DEVELOPER_PORTAL, DeveloperPortal } from './developer-portal.ts'
import { PUBLISHER, publisherApp } from './publisher.ts'
import type { RestApp } from './rest-app.ts'
import type { AdminServices } from './admin-services.ts'
import { SCIM, scimApp } from './scim.ts'
import { CALLBACK_PATHS, callbackApp } from './workflows.ts'

interface AdminApp {
  readonly paths: readonly string[]
  readonly area: 'console' | 'web'
  readonly fetch: RestApp['app']['fetch']
}

/** `callback`: further path at which a workflow engine reports its decisions; '' for none. */
export function adminApps(services: () => AdminServices, callback: string): readonly AdminApp[] {
  const authenticator = new AdminAuthenticator(services)
  const callbacks = [...new Set([...CALLBACK_PATHS, ...(callback === '' ? [] : [callback])])]
  return [
    { paths: [DEVELOPER_PORTAL], area: 'web', fetch: new DeveloperPortal(services, authenticator).app.fetch },
    { paths: [PUBLISHER], area: 'console', fetch: publisherApp(services, authenticator).fetch },
    { paths: [ADMIN], area: 'console', fetch: adminApp(services, authenticator).fetch },
    { paths: callbacks, area: 'console', fetch: callbackApp(services, authenticator, callbacks).fetch },
    { paths: [SCIM], area: 'console', fetch: scimApp(services, authenticator).fetch },
  ]
}
