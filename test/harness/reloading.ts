/** Changes the files of a home while its gateway runs, and requests reloads. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sendCommand } from '../../src/cli/control-client.ts'
import type { ReloadReport } from '../../src/primary/reload-report.ts'
import { openProject } from './open-project.ts'
import type { Home, RunningGateway } from './program.ts'

/** Writes a file of the home, and its folders. The file is renamed into place, so no reader finds half of it. */
export function put(home: Home, path: string, content: string | Buffer): void {
  const whole = join(home.path, path)
  mkdirSync(dirname(whole), { recursive: true })
  writeFileSync(`${whole}~`, content)
  renameSync(`${whole}~`, whole)
}

/** Writes a project into a folder of this name, with these URLs as backends of `/<context>/1.0.0`. */
export function putApi(home: Home, project: string, context: string, ...urls: readonly string[]): void {
  const [first, ...others] = urls.map(url => ({ url }))
  const endpointConfig =
    others.length === 0
      ? { endpoint_type: 'http', production_endpoints: first }
      : { endpoint_type: 'load_balance', failOver: true, production_endpoints: [first, ...others] }
  put(home, `apis/${project}/api.yaml`, openProject({ name: project, context: `/${context}`, endpointConfig }))
}

export function removeApi(home: Home, project: string): void {
  rmSync(join(home.path, 'apis', project), { recursive: true })
}

export function reload(at: RunningGateway | Home): Promise<ReloadReport> {
  const { data } = 'home' in at ? at.home : at
  return sendCommand<ReloadReport>(data, { command: 'reload' })
}
