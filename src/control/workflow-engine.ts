/**
 * Calls the workflow engine for each request that waits for approval, in the form of Activiti, until the engine has
 * taken it. The database holds what is to be sent: nothing is lost with the thread, and of several nodes one calls.
 */
import { basicAuthorization } from '../auth/basic-credentials.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { EventLog } from '../observe/events.ts'
import { planListeners } from '../plan/listener-planning.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import type { Workflow } from './registry/entities.ts'
import { RegistryUnavailable } from './registry/registry-errors.ts'
import { credentialsOrSuperAdmin } from './registry/super-admin.ts'
import type { WorkflowStore } from './registry/workflow-store.ts'
import type { HttpClient } from './remote/http-client.ts'

interface WorkflowEngineSettings {
  readonly url: string
  readonly username: string
  readonly password: string
  /** Variables of every process. */
  readonly variables: Readonly<Record<string, string>>
}

interface WorkflowEngineContext {
  readonly workflows: WorkflowStore
  readonly send: HttpClient['send']
  /** Null where no engine is called. */
  readonly settings: () => WorkflowEngineSettings | null
  readonly report: EventLog['report']
  readonly nowMs: () => number
}

const PROCESSES = 'runtime/process-instances'
/** Milliseconds between two attempts to send one request. */
const RETRY_MS = 60_000
/** Requests that are read at once. */
const BATCH = 100
const BYTES_MAX = 64 * 1024

export class WorkflowEngine {
  readonly #context: WorkflowEngineContext
  readonly #retryMs: number
  readonly #calls = new SerialQueue(() => this.#send())
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  constructor(context: WorkflowEngineContext, retryMs = RETRY_MS) {
    this.#context = context
    this.#retryMs = retryMs
    this.#timer = setInterval(() => this.wake(), retryMs).unref()
  }

  /** Sends the requests that wait for the engine. */
  wake(): void {
    if (this.#isClosed || this.#context.settings() === null) return
    this.#calls.run().catch((error: Error) => {
      if (error instanceof RegistryUnavailable) this.#failed('', error.message)
      else this.#context.report('error', 'bug', { CAUSE_OF_ERROR: error.stack ?? error.message })
    })
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  /** Stops at the first failure: the next attempt follows after the pause. */
  async #send(): Promise<void> {
    const { workflows, nowMs } = this.#context
    for (let isMore = true; isMore; ) {
      const found = await workflows.listUnsent(nowMs() - this.#retryMs, BATCH)
      isMore = found.length === BATCH
      for (const { workflow, triedMs } of found) {
        const settings = this.#context.settings()
        if (this.#isClosed || settings === null) return
        if (!(await workflows.claim(workflow.id, triedMs))) continue
        const cause = await this.#call(workflow, settings)
        if (cause !== '') {
          this.#failed(workflow.id, cause)
          return
        }
        await workflows.sent(workflow.id)
      }
    }
  }

  /** Why the engine has not taken the request; '' if it has. */
  async #call(workflow: Workflow, { url, username, password, variables }: WorkflowEngineSettings): Promise<string> {
    const { id, kind, requester, tenant, properties } = workflow
    const all = { ...properties, ...variables, workflowReferenceId: id, requester, tenant }
    try {
      const { status } = await this.#context.send({
        url: `${url.replace(/\/?$/, '/')}${PROCESSES}`,
        authorization: basicAuthorization(username, password),
        json: {
          processDefinitionKey: kind,
          businessKey: id,
          variables: Object.entries(all).map(([name, value]) => ({ name, value })),
        },
        bytesMax: BYTES_MAX,
      })
      return status >= 200 && status < 300 ? '' : `it responds with status ${status}`
    } catch (error) {
      return (error as Error).message
    }
  }

  #failed(WORKFLOW: string, CAUSE_OF_ERROR: string): void {
    this.#context.report('warn', 'workflow engine not called', { WORKFLOW, CAUSE_OF_ERROR })
  }
}

/** Null where no engine is called. `origin`: `https://host:port` of the management listener. */
export function workflowEngineSettings(
  configuration: Configuration,
  dataDir: string,
  origin: string,
): WorkflowEngineSettings | null {
  const workflow = configuration['apim.workflow']
  if (!workflow.enable || !workflow.call_engine) return null
  const account = { username: workflow.wf_engine_user, password: workflow.wf_engine_pass }
  const { client_registration_username: user, client_registration_password: password } = workflow
  const endpoint = (given: string): string => {
    if (given === '/token') return tokenEndpoint(configuration, origin)
    return given.startsWith('/') ? `${origin}${given}` : given
  }
  return {
    url: workflow.service_url,
    ...credentialsOrSuperAdmin(account, configuration, dataDir),
    variables: {
      callbackUrl: endpoint(workflow.callback_endpoint),
      tokenEndpoint: endpoint(workflow.token_endpoint),
      clientRegistrationEndpoint: endpoint(workflow.client_registration_endpoint),
      ...(user !== '' && password !== '' && { clientRegistrationUsername: user, clientRegistrationPassword: password }),
    },
  }
}

/** `/token` of the gateway's own TLS port, or the key manager's endpoint where this node has no such port. */
function tokenEndpoint(configuration: Configuration, origin: string): string {
  const listener = planListeners(configuration).find(({ kind, port }) => kind === 'https' && port !== 0)
  if (listener === undefined) return `${origin}/oauth2/token`
  return `https://${configuration.server.hostname}:${listener.port}/token`
}
