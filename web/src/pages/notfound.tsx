import { Link } from "../lib/router";

export function NotFound() {
  return (
    <div className="page narrow">
      <h1>No such page</h1>
      <p>
        Nothing is served under this address. Begin at the <Link to="/">overview</Link> or in the{" "}
        <Link to="/graph">graph</Link>, or press <kbd>/</kbd> to search.
      </p>
    </div>
  );
}
