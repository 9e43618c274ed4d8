/** `deployment_environments.yaml` of an exported project: on which gateways it is deployed, under which hosts. */
import type { DeclaredApi } from './gateway-environments.ts'
import { hostName } from '../structure/host-name.ts'
import { hostFault } from './gateway-hosts.ts'
import type { YamlFile } from './yaml-file.ts'

export function readDeployments(file: YamlFile): DeclaredApi['deployments'] {
  if (file.faults.length > 0) return []
  const type = file.text(['type'])
  if (type !== undefined && type !== 'deployment_environments') {
    file.object(['type'], type, 'expected deployment_environments', 'write that, or remove the file')
  }
  const length = file.lengthOf(['data'])
  if (length === undefined && file.has(['data'])) file.object(['data'], undefined, 'expected a list', 'begin with "-"')
  return Array.from({ length: length ?? 0 }, (_, item) => {
    const at = ['data', item]
    const label = file.text([...at, 'deploymentEnvironment'])?.trim() ?? ''
    const path = [...at, 'deploymentVhost']
    const given = file.optional(path)
    const host = hostName(given)
    // A port alone is no name, and no name at all would be every host.
    if (given !== '') file.objectAs(path, given, hostFault(host))
    return { label, host, where: file.where(path) }
  })
}
