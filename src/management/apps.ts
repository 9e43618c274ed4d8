/** The management API as apps of hono, and what the command line asks of the same objects. */
import { ADMIN, adminApp } from './admin.ts'
import { Callers } from './callers.ts'
import { Commands } from './commands.ts'
import { DEVELOPER_PORTAL, DeveloperPortal } from './developer-portal.ts'
import { PUBLISHER, publisherApp } from './publisher.ts'
import type { ResourceApp } from './resource-app.ts'
import type { ManagementRoom } from './room.ts'
import { SCIM, scimApp } from './scim.ts'

interface ManagementApp {
  readonly paths: readonly string[]
  readonly gate: 'console' | 'web'
  readonly fetch: ResourceApp['app']['fetch']
}

export interface Management {
  readonly apps: readonly ManagementApp[]
  readonly commands: Commands
}

/** `room` is asked for each time: a reload replaces what stands in it. */
export function management(room: () => ManagementRoom): Management {
  const callers = new Callers(room)
  const apps = [
    { paths: [DEVELOPER_PORTAL], gate: 'web' as const, fetch: new DeveloperPortal(room, callers).app.fetch },
    { paths: [PUBLISHER], gate: 'console' as const, fetch: publisherApp(room, callers).fetch },
    { paths: [ADMIN], gate: 'console' as const, fetch: adminApp(room, callers).fetch },
    { paths: [SCIM], gate: 'console' as const, fetch: scimApp(room, callers).fetch },
  ]
  return { apps, commands: new Commands(room) }
}
