/** Workflow resources of administrators, and the callback of a workflow engine. */
import { ApprovalService, WORKFLOW_KINDS } from './approval-service.ts'
import type { AdminAuthenticator } from './authentication.ts'
import type { Workflow } from '../registry/entities.ts'
import { listRepresentation } from './representations.ts'
import { oneOf, optional, PAGE, readBody, readQuery, text, textMap } from './request-fields.ts'
import { pathParameter, RestApp, type RestHandler } from './rest-app.ts'
import type { AdminServices } from './admin-services.ts'

const VIEW = ['apim:api_workflow_view', 'apim:api_workflow_approve', 'apim:admin']
const APPROVE = ['apim:api_workflow_approve', 'apim:admin']
/** Versions of the publisher API that the reference platform lists for the callback. */
export const CALLBACK_PATHS: readonly string[] = ['v0.14', 'v0.15'].map(
  version => `/api/am/publisher/${version}/workflows/update-workflow-status`,
)

const DECISION = {
  status: oneOf('APPROVED', 'REJECTED'),
  attributes: optional(textMap(50, 2048), {}),
  description: optional(text(2048, 0), ''),
}

export function addWorkflows(resources: RestApp, services: () => AdminServices): void {
  const approvals = new ApprovalService(services)
  const { route } = resources
  route('get', '/workflows', VIEW, async (context, caller) => {
    const workflowType = optional(oneOf('', ...WORKFLOW_KINDS), '')
    const { workflowType: kind, ...page } = readQuery(context.req.raw, { ...PAGE, workflowType })
    const { total, workflows } = await approvals.listPending(caller, kind, page)
    const path = `${resources.base}/workflows${kind === '' ? '' : `?workflowType=${kind}`}`
    return context.json(listRepresentation(path, workflows.map(workflowRepresentation), page, total))
  })
  route('get', '/workflows/:id', VIEW, async (context, caller) =>
    context.json(workflowRepresentation(await approvals.get(pathParameter(context, 'id'), caller))),
  )
  route('post', '/workflows/update-workflow-status', APPROVE, decisionHandler(services))
}

/** Serves the callback at `paths`. */
export function callbackApp(
  services: () => AdminServices,
  authenticator: AdminAuthenticator,
  paths: readonly string[],
): RestApp['app'] {
  const resources = new RestApp('', authenticator, services)
  for (const path of paths) resources.route('post', path, APPROVE, decisionHandler(services))
  return resources.app
}

function decisionHandler(services: () => AdminServices): RestHandler {
  const approvals = new ApprovalService(services)
  return async (context, caller) => {
    const { workflowReferenceId } = readQuery(context.req.raw, { workflowReferenceId: text(64) })
    const { status, description } = await readBody(context.req.raw, DECISION)
    const { status: workflowStatus } = await approvals.decide(workflowReferenceId, status, description, caller)
    return context.json({ workflowStatus, jsonPayload: '' })
  }
}

function workflowRepresentation({ id, kind, status, properties, requester, description, ...times }: Workflow) {
  return {
    workflowType: kind,
    workflowStatus: status,
    createdTime: new Date(times.createdMs).toISOString(),
    updatedTime: new Date(times.updatedMs).toISOString(),
    referenceId: id,
    properties: { ...properties, requester },
    description: description === '' ? `${kind} of ${requester}` : description,
  }
}
