import { Component, type ReactNode } from "react";

interface State {
  error: unknown;
  place: string;
}

/** What to show when a part of the page cannot be loaded or drawn; another address starts anew. */
export class Boundary extends Component<{ place: string; children: ReactNode }, State> {
  override state: State = { error: undefined, place: this.props.place };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps(props: { place: string }, state: State): State | null {
    return props.place === state.place ? null : { error: undefined, place: props.place };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="problem" role="alert">
        <h1>This page cannot be shown</h1>
        <p className="wrap">{String(this.state.error)}</p>
        <p>After an update of the server, loading it again is enough.</p>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Load it again
        </button>
      </div>
    );
  }
}
