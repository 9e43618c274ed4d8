/** Builds the REST apps of the admin API and the commands of the command line. */
import { ADMIN, adminApp } from './administration.ts'
import { AdminAuthenticator } from './authentication.ts'
import { ManagementCommands } from './commands.ts'
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

export interface AdminApi {
  readonly apps: readonly AdminApp[]
  readonly commands: ManagementCommands
}

/** `callback`: further path at which a workflow engine reports its decisions; '' for none. */
export function adminApi(services: () => AdminServices, callback: string): AdminApi {
  const authenticator = new AdminAuthenticator(services)
  const callbacks = [...new Set([...CALLBACK_PATHS, ...(callback === '' ? [] : [callback])])]
  const apps = [
    { paths: [DEVELOPER_PORTAL], area: 'web' as const, fetch: new DeveloperPortal(services, authenticator).app.fetch },
    { paths: [PUBLISHER], area: 'console' as const, fetch: publisherApp(services, authenticator).fetch },
    { paths: [ADMIN], area: 'console' as const, fetch: adminApp(services, authenticator).fetch },
    { paths: callbacks, area: 'console' as const, fetch: callbackApp(services, authenticator, callbacks).fetch },
    { paths: [SCIM], area: 'console' as const, fetch: scimApp(services, authenticator).fetch },
  ]
  return { apps, commands: new ManagementCommands(services) }
}
