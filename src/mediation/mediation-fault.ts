/** A mediator that cannot do its work ends the sequence: `onError` runs, or the flow raises the fault. */
import type { RaisedFault } from './worker-task.ts'

interface MediationFaultParts {
  /** 0: that of a failed mediation. */
  readonly code?: number
  /** Message for the client. */
  readonly message: string
  readonly detail?: string
  /** Cause for the log: without any text of a client. The message without one. */
  readonly cause?: string
  /** Fault sequence that words the fault; '' for that of its code. */
  readonly sequence?: string
  readonly type?: string
  readonly status?: number
  readonly transport?: RaisedFault['transport']
}

export class MediationFault extends Error {
  override readonly name = 'MediationFault'
  #raised: RaisedFault
  #location = ''

  constructor(parts: MediationFaultParts) {
    const { code = 0, message, detail = '', cause = message, sequence = '', type, status, transport } = parts
    super(message)
    this.#raised = {
      ...{ code, message, detail, cause, sequence },
      ...(type === undefined ? {} : { type }),
      ...(status === undefined ? {} : { status }),
      ...(transport === undefined ? {} : { transport }),
    }
  }

  get raised(): RaisedFault {
    return this.#raised
  }

  /** Names the mediator in the cause; the innermost one does it first. */
  locate(location: string): this {
    if (this.#location !== '') return this
    this.#location = location
    this.#raised = { ...this.#raised, cause: `${location}: ${this.#raised.cause}` }
    return this
  }
}
